// SPDX-License-Identifier: Apache-2.0
#include "base/user_mounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/number.h"

namespace sluice {

namespace {

constexpr std::uint64_t loop_major = 7;

template <class Take>
void each_line(std::string_view text, Take const& take) {
  for (unsigned line = 1; !text.empty(); ++line) {
    auto const end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end), line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// "/a/" is "/a".
std::string without_last_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// `name` alone, or with a value.
bool is_option(std::string_view option, std::string_view name) {
  return option.starts_with(name) && (option.size() == name.size() || option[name.size()] == '=');
}

void take_options(std::string_view options, fstab_row& row) {
  for (auto const option : split_text(options, ",")) {
    for (char const* const name : {"user", "users", "owner", "group"})
      if (is_option(option, name)) row.option = name;
    row.is_bind |= option == "bind" || option == "rbind";
    row.is_image |= is_option(option, "loop");
  }
}

bool is_fuse(std::string_view type) {
  for (std::string_view const name : {"fuse", "fuseblk"})
    if (type == name || (type.starts_with(name) && type[name.size()] == '.')) return true;
  return false;
}

/// The kernel says who mounted it. Where it does not, he may be anybody.
std::optional<std::string> why_fuse(mount_row const& m) {
  if (!is_fuse(m.type)) return {};
  std::optional<std::string_view> user;
  for (auto const option : split_text(m.options, ","))
    if (option.starts_with("user_id=")) user = option.substr(8);
  if (user == "0") return {};
  return fmt::format("uid {} serves it by FUSE", user.value_or("?"));
}

/// As udev writes a tag into the name of a link.
std::string as_in_link(std::string_view tag) {
  constexpr std::string_view plain = "#+-.:=@_";
  std::string out;
  for (char const c : tag) {
    auto const byte = static_cast<unsigned char>(c);
    bool const is_plain = byte >= 0x80 || std::isalnum(byte) != 0 || plain.find(c) != plain.npos;
    out += is_plain ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return out;
}

/// "none" and "tmpfs" name no device.
bool is_telling(std::string_view source) {
  return source.find_first_of("/:") != std::string_view::npos;
}

bool is_loop(mount_row const& m) {
  return m.device >> 32 == loop_major || m.source.starts_with("/dev/loop");
}

/// Of a bind mount only the point: what it shows is another mount's.
bool fits(mount_row const& m, fstab_row const& row) {
  if (m.point == row.point) return true;
  if (row.is_bind) return false;
  if (row.is_image && is_loop(m)) return true;
  if (row.device != 0 && row.device == m.device) return true;
  return is_telling(row.source) && row.source == m.source;
}

/// Nothing is mounted where it says. The note is old, and its device perhaps another's by now; or
/// a directory above was renamed.
template <typename Row>
bool is_empty(Row const& row, std::vector<mount_row> const& all) {
  return std::none_of(all.begin(), all.end(),
                      [&](mount_row const& m) { return m.point == row.point; });
}

bool fits(mount_row const& m, utab_row const& row) {
  return m.point == row.point || (is_telling(row.source) && row.source == m.source);
}

std::optional<std::string> why_itself(mount_row const& m, std::vector<mount_row> const& all,
                                      user_mount_notes const& notes, bool with_binds) {
  if (auto why = why_fuse(m)) return why;
  bool const is_movable =
      std::find(notes.movable.begin(), notes.movable.end(), m.id) != notes.movable.end();
  for (auto const& row : notes.fstab) {
    if (row.is_bind && !with_binds) continue;
    if (fits(m, row)) return fmt::format("line {} of /etc/fstab has \"{}\"", row.line, row.option);
    // Of this mount alone: where its file system is mounted besides, no user moved it.
    if (with_binds && is_movable && is_unknown_tag(row) && is_empty(row, all))
      return fmt::format(
          "line {} of /etc/fstab has \"{}\", and a user may rename directories above this mount",
          row.line, row.option);
  }
  for (auto const& row : notes.utab)
    if (fits(m, row) && (is_movable || !is_empty(row, all)))
      return "/run/mount/utab says that it was mounted for a user";
  return {};
}

}  // namespace

bool is_unknown_tag(fstab_row const& row) {
  return row.device == 0 && tagged_device(row.source).has_value();
}

std::vector<fstab_row> parse_fstab(std::string_view text) {
  std::vector<fstab_row> rows;
  each_line(text, [&](std::string_view line, unsigned number) {
    auto const field = split_text(line, " \t");
    if (field.size() < 4 || field[0].starts_with('#')) return;
    fstab_row row;
    take_options(field[3], row);
    if (row.option.empty()) return;
    row.source = mount_text(field[0]);
    row.point = without_last_slash(mount_text(field[1]));
    row.line = number;
    std::string_view const from = row.source;
    bool const is_file =
        from.starts_with('/') && !from.starts_with("//") && !from.starts_with("/dev/");
    row.is_image |= is_file && !row.is_bind;
    rows.push_back(std::move(row));
  });
  return rows;
}

std::vector<utab_row> parse_utab(std::string_view text) {
  std::vector<utab_row> rows;
  each_line(text, [&](std::string_view line, unsigned) {
    utab_row row;
    bool is_of_user = false;
    for (auto const field : split_text(line, " \t")) {
      if (field.starts_with("SRC=")) row.source = mount_text(field.substr(4));
      if (field.starts_with("TARGET=")) row.point = mount_text(field.substr(7));
      if (!field.starts_with("OPTS=")) continue;
      for (auto const option : split_text(field.substr(5), ","))
        is_of_user |= is_option(option, "user") || is_option(option, "uhelper");
    }
    if (is_of_user) rows.push_back(std::move(row));
  });
  return rows;
}

std::optional<std::string> tagged_device(std::string const& source) {
  constexpr std::array<std::pair<std::string_view, char const*>, 5> tags = {
      {{"UUID=", "by-uuid"},
       {"LABEL=", "by-label"},
       {"PARTUUID=", "by-partuuid"},
       {"PARTLABEL=", "by-partlabel"},
       {"ID=", "by-id"}}};
  for (auto const& [tag, directory] : tags) {
    if (!source.starts_with(tag)) continue;
    std::string value = source.substr(tag.size());
    std::erase(value, '"');
    return fmt::format("/dev/disk/{}/{}", directory, as_in_link(value));
  }
  return {};
}

std::optional<std::string> why_of_user(mount_row const& m, std::vector<mount_row> const& all,
                                       user_mount_notes const& notes) {
  if (auto why = why_itself(m, all, notes, true)) return why;
  for (auto const& other : all) {
    if (other.device != m.device) continue;
    if (auto why = why_itself(other, all, notes, false))
      return fmt::format("it is mounted at {} too, and {}", other.point, *why);
  }
  return {};
}

}  // namespace sluice
