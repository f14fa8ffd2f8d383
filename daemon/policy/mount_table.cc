// SPDX-License-Identifier: Apache-2.0
#include "policy/mount_table.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/number.h"

namespace sluice::policy {

namespace {

constexpr std::array<std::string_view, 17> quiet_types = {
    "proc",       "sysfs",    "cgroup",  "cgroup2",   "devtmpfs",   "devpts",
    "debugfs",    "tracefs",  "bpf",     "mqueue",    "pstore",     "configfs",
    "securityfs", "efivarfs", "fusectl", "hugetlbfs", "binfmt_misc"};

bool is_quiet(mount const& m) {
  return std::find(quiet_types.begin(), quiet_types.end(), m.type) != quiet_types.end();
}

std::uint64_t device_number(std::uint64_t major, std::uint64_t minor) {
  return major << 32 | minor;
}

/// mountinfo writes blank, tab, newline and backslash as \ooo.
std::string unescaped(std::string_view text) {
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

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  while (!line.empty()) {
    auto const end = std::min(line.find(' '), line.size());
    if (end > 0) out.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return out;
}

/// id parent major:minor root point options [optional…] - type source options
bool parse_line(std::string_view line, mount& row) {
  auto const field = words(line);
  auto const dash = std::find(field.begin(), field.end(), "-");
  if (field.size() < 7 || dash - field.begin() < 6 || dash + 1 >= field.end()) return false;
  auto const colon = field[2].find(':');
  std::uint64_t major = 0, minor = 0;
  if (colon == std::string_view::npos || !to_number(field[0], row.id) ||
      !to_number(field[2].substr(0, colon), major) || !to_number(field[2].substr(colon + 1), minor))
    return false;
  row.device = device_number(major, minor);
  row.root = unescaped(field[3]);
  row.point = unescaped(field[4]);
  row.type = unescaped(dash[1]);
  row.options = unescaped(field[5]);
  if (field.end() - dash > 2) row.source = unescaped(dash[2]);
  if (field.end() - dash > 3) row.options += "," + unescaped(dash[3]);
  return true;
}

/// Of file systems whose statfs number comes from their UUID; others make it from the device, or of
/// nothing.
std::uint64_t identity_of(std::string const& path) {
  struct statfs fs = {};
  if (statfs(path.c_str(), &fs) != 0) return 0;
  bool const has_uuid = fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC;
  std::uint64_t id = 0;
  if (has_uuid) std::memcpy(&id, &fs.f_fsid, sizeof id);
  return id;
}

/// Where the tree lies inside its file system.
std::string inner_path(mount const& m, std::string const& path) {
  if (!lies_below(path, m.point)) return {};
  std::string const rest = path.substr(m.point == "/" ? 0 : m.point.size());
  if (rest.empty() || rest == "/") return m.root;
  return m.root == "/" ? rest : m.root + rest;
}

}  // namespace

std::vector<mount> parse_mounts(std::string_view mountinfo) {
  std::vector<mount> rows;
  while (!mountinfo.empty()) {
    auto const end = std::min(mountinfo.find('\n'), mountinfo.size());
    mount row;
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

mount const* mount_of(std::vector<mount> const& mounts, place const& where) {
  mount const* deepest = nullptr;
  for (auto const& m : mounts) {
    if (where.mount_id != 0 && m.id == where.mount_id) return &m;
    if (!lies_below(where.path, m.point)) continue;
    if (deepest == nullptr || m.point.size() >= deepest->point.size()) deepest = &m;
  }
  return where.mount_id != 0 ? nullptr : deepest;
}

bool is_whole_device(std::vector<mount> const& mounts, place const& where) {
  mount const* m = mount_of(mounts, where);
  return m != nullptr && m->point == where.path && m->root == "/" && m->device == where.device;
}

std::vector<std::uint64_t> inside_mounts(std::vector<mount> const& mounts, place const& where) {
  std::vector<std::uint64_t> ids;
  mount const* own = mount_of(mounts, where);
  if (own == nullptr) return ids;
  std::string const inner = inner_path(*own, where.path);
  if (inner.empty()) return ids;
  for (auto const& m : mounts)
    if (m.device == own->device && lies_below(m.root, inner)) ids.push_back(m.id);
  return ids;
}

std::vector<mount> mounts_below(std::vector<mount> const& mounts, place const& where) {
  std::vector<mount> below;
  mount const* const own = mount_of(mounts, where);
  for (auto const& m : mounts) {
    if (own == nullptr || m.point == where.path || !lies_below(m.point, where.path)) continue;
    std::erase_if(below, [&](mount const& covered) { return lies_below(covered.point, m.point); });
    if (!is_quiet(m)) below.push_back(m);
  }
  return below;
}

std::vector<std::uint64_t> devices_only_in(std::vector<mount> const& below,
                                           std::vector<mount> const& mounts) {
  std::vector<std::uint64_t> devices;
  auto const is_below = [&](mount const& m) {
    return std::any_of(below.begin(), below.end(), [&](mount const& b) { return b.id == m.id; });
  };
  for (auto const& b : below)
    if (std::all_of(mounts.begin(), mounts.end(),
                    [&](mount const& m) { return m.device != b.device || is_below(m); }))
      devices.push_back(b.device);
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

std::uint64_t top_mount(std::vector<mount> const& mounts) {
  std::uint64_t id = 0;
  for (auto const& m : mounts)
    if (m.point == "/") id = m.id;
  return id;
}

std::vector<std::uint64_t> quiet_devices(std::vector<mount> const& mounts) {
  std::vector<std::uint64_t> devices;
  for (auto const& m : mounts)
    if (is_quiet(m)) devices.push_back(m.device);
  // Anonymous shared memory has a device of its own that no mount table shows.
  if (int const fd = memfd_create("sluice", MFD_CLOEXEC); fd >= 0) {
    struct statx st = {};
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &st) == 0)
      devices.push_back(device_number(st.stx_dev_major, st.stx_dev_minor));
    close(fd);
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

place find_place(std::string const& path) {
  std::unique_ptr<char, void (*)(void*)> const real(realpath(path.c_str(), nullptr), std::free);
  if (!real) throw usage_error("target " + path + ": " + std::strerror(errno));
  struct statx st = {};
  unsigned const want = STATX_TYPE | STATX_INO | STATX_MNT_ID;
  if (statx(AT_FDCWD, real.get(), 0, want, &st) != 0)
    throw usage_error("target " + path + ": " + std::strerror(errno));
  if (!S_ISDIR(st.stx_mode)) throw usage_error("target " + path + " is not a directory");
  place found;
  found.path = real.get();
  found.device = device_number(st.stx_dev_major, st.stx_dev_minor);
  found.inode = st.stx_ino;
  found.mount_id = (st.stx_mask & STATX_MNT_ID) != 0 ? st.stx_mnt_id : 0;
  found.identity = identity_of(found.path);
  return found;
}

std::vector<mount> read_mounts() {
  std::ifstream file("/proc/self/mountinfo");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_mounts(text.str());
}

}  // namespace sluice::policy
