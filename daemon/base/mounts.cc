// SPDX-License-Identifier: Apache-2.0
#include "base/mounts.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/number.h"

namespace sluice {

namespace {

/// id parent major:minor root point options [optional…] - type source options
bool parse_line(std::string_view line, mount_row& row) {
  auto const field = split_text(line, " ");
  auto const dash = std::find(field.begin(), field.end(), "-");
  if (field.size() < 7 || dash - field.begin() < 6 || dash + 1 >= field.end()) return false;
  auto const colon = field[2].find(':');
  std::uint64_t major = 0, minor = 0;
  if (colon == std::string_view::npos || !to_number(field[0], row.id) ||
      !to_number(field[1], row.parent) || !to_number(field[2].substr(0, colon), major) ||
      !to_number(field[2].substr(colon + 1), minor))
    return false;
  row.device = device_number(major, minor);
  row.root = mount_text(field[3]);
  row.point = mount_text(field[4]);
  row.type = mount_text(dash[1]);
  row.options = mount_text(field[5]);
  if (field.end() - dash > 2) row.source = mount_text(dash[2]);
  if (field.end() - dash > 3) row.options += "," + mount_text(dash[3]);
  return true;
}

}  // namespace

std::string mount_text(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const digit = [&](std::size_t k) { return text[k] >= '0' && text[k] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      out +=
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string_view> split_text(std::string_view text, char const* between) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    auto const end = std::min(text.find_first_of(between), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::vector<mount_row> parse_mounts(std::string_view mountinfo) {
  std::vector<mount_row> rows;
  while (!mountinfo.empty()) {
    auto const end = std::min(mountinfo.find('\n'), mountinfo.size());
    mount_row row;
    if (parse_line(mountinfo.substr(0, end), row)) rows.push_back(std::move(row));
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
  }
  return rows;
}

bool lies_below(std::string_view path, std::string_view root) {
  if (root == "/") return path.starts_with('/');
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

std::string device_text(std::uint64_t device) {
  return std::to_string(device >> 32) + ":" + std::to_string(device & 0xffffffff);
}

std::vector<mount_row> read_mounts() {
  std::ifstream file("/proc/self/mountinfo");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_mounts(text.str());
}

std::optional<std::uint64_t> mount_id_of(int fd) {
  std::ifstream in("/proc/self/fdinfo/" + std::to_string(fd));
  for (std::string word; in >> word;)
    if (std::uint64_t id = 0; word == "mnt_id:" && in >> id) return id;
  return {};
}

}  // namespace sluice
