// SPDX-License-Identifier: Apache-2.0
#include "base/believed_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/user_mounts.h"
#include "base/whole_file.h"

namespace sluice {

namespace {

constexpr unsigned most_followed = 40;  // as the kernel has it

std::uint64_t device_of(std::string const& source) {
  struct stat st = {};
  if (!source.starts_with("/dev/") || stat(source.c_str(), &st) != 0 || !S_ISBLK(st.st_mode))
    return 0;
  return device_number(major(st.st_rdev), minor(st.st_rdev));
}

descriptor open_root() { return descriptor(open("/", O_PATH | O_CLOEXEC)); }

/// Others than root may rename what lies in it, or it itself.
bool is_others(int directory) {
  struct statx st = {};
  // As far as the kernel knows: no server is asked.
  if (statx(directory, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) != 0)
    return true;
  bool const is_open =
      (st.stx_mode & S_IWOTH) != 0 || ((st.stx_mode & S_IWGRP) != 0 && st.stx_gid != 0);
  return st.stx_uid != 0 || (is_open && (st.stx_mode & S_ISVTX) == 0);
}

/// Whether a user may change the path of a mount. What is on FUSE is not looked at.
bool is_movable(mount_row const& m, std::vector<mount_row> const& all) {
  for (auto const& above : all)
    if (above.type.starts_with("fuse") && m.point.starts_with(above.point + "/")) return true;
  descriptor at = open_root();
  for (auto const& part : std::filesystem::path(m.point).parent_path().relative_path()) {
    if (!at || is_others(at.get())) return true;
    at = descriptor(openat(at.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  }
  return !at || is_others(at.get());
}

user_mount_notes read_notes(std::vector<mount_row> const& all) {
  user_mount_notes notes = {parse_fstab(read_file("/etc/fstab").value_or("")),
                            parse_utab(read_file("/run/mount/utab").value_or(""))};
  for (auto& row : notes.fstab)
    row.device = device_of(tagged_device(row.source).value_or(row.source));
  if (notes.utab.empty() && std::none_of(notes.fstab.begin(), notes.fstab.end(), is_unknown_tag))
    return notes;
  for (auto const& m : all)
    if (is_movable(m, all)) notes.movable.push_back(m.id);
  return notes;
}

/// A btrfs has a number of its own for each subvolume: that of its disk is what fstab means.
std::vector<mount_row> with_disks(std::vector<mount_row> all) {
  for (auto& m : all)
    if (std::uint64_t const disk = m.type == "btrfs" ? device_of(m.source) : 0; disk != 0)
      m.device = disk;
  return all;
}

class mount_judge {
 public:
  explicit mount_judge(std::vector<mount_row> rows = read_mounts())
      : all_(with_disks(std::move(rows))) {}

  bool is_chosen_by_root(std::uint64_t mount_id) const {
    auto const m = find(mount_id);
    return m != all_.end() && !why_of_user(*m, all_, notes_);
  }
  bool is_device_of_root(std::uint64_t device) const {
    return std::any_of(all_.begin(), all_.end(), [&](mount_row const& m) {
      return m.device == device && !why_of_user(m, all_, notes_);
    });
  }
  std::optional<std::string> why_not(int fd) const {
    auto const m = find(mount_id_of(fd));
    if (m == all_.end()) return "it is on a mount that is gone, so its owner is not believed";
    auto const why = why_of_user(*m, all_, notes_);
    if (!why) return {};
    return fmt::format(
        "a user may have chosen what is mounted at {} ({}), so what it says of owners is not "
        "believed",
        m->point, *why);
  }

 private:
  std::vector<mount_row>::const_iterator find(std::optional<std::uint64_t> id) const {
    return std::find_if(all_.begin(), all_.end(),
                        [&](mount_row const& one) { return id && one.id == *id; });
  }

  std::vector<mount_row> const all_;
  user_mount_notes const notes_ = read_notes(all_);
};

/// Parts of a path, the next one last.
void put_parts(std::vector<std::string>& left, std::filesystem::path const& path) {
  std::vector<std::string> parts;
  for (auto const& part : path.relative_path())
    if (!part.empty() && part != ".") parts.push_back(part);
  left.insert(left.end(), parts.rbegin(), parts.rend());
}

bool keeps_doubting = false;

bool doubts() { return keeps_doubting || geteuid() == 0; }

/// Where a link leads to; nothing: it is none.
std::optional<std::filesystem::path> link_at(int fd) {
  char to[4096];
  ssize_t const n = readlinkat(fd, "", to, sizeof to);
  if (n < 0) return {};
  return std::string(to, static_cast<std::size_t>(n));
}

}  // namespace

std::vector<mount_row> chosen_by_root(std::vector<mount_row> const& rows) {
  mount_judge const judge(rows);
  std::vector<mount_row> chosen;
  for (auto const& m : rows)
    if (judge.is_chosen_by_root(m.id)) chosen.push_back(m);
  return chosen;
}

bool is_chosen_by_root(std::uint64_t device) { return mount_judge().is_device_of_root(device); }

void keep_doubting() { keeps_doubting = true; }

std::optional<std::string> why_not_believed(int fd) {
  if (!doubts()) return {};
  return mount_judge().why_not(fd);
}

std::optional<std::string> why_not_believed(std::string const& path) {
  if (!doubts()) return {};
  mount_judge const judge;
  std::vector<std::string> left;
  put_parts(left, std::filesystem::absolute(path));
  descriptor at = open_root();
  if (auto why = judge.why_not(at.get())) return why;
  for (unsigned links = 0; !left.empty();) {
    descriptor next(openat(at.get(), left.back().c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return {};  // whoever opens it says why
    left.pop_back();
    if (auto why = judge.why_not(next.get())) return why;
    auto const to = link_at(next.get());
    if (!to) {
      at = std::move(next);
      continue;
    }
    if (++links > most_followed) return {};
    if (to->is_absolute()) at = open_root();
    put_parts(left, *to);
  }
  return {};
}

}  // namespace sluice
