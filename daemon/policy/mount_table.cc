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
#include <memory>

#include "base/error.h"

namespace sluice::policy {

namespace {

constexpr std::array<std::string_view, 17> quiet_types = {
    "proc",       "sysfs",    "cgroup",  "cgroup2",   "devtmpfs",   "devpts",
    "debugfs",    "tracefs",  "bpf",     "mqueue",    "pstore",     "configfs",
    "securityfs", "efivarfs", "fusectl", "hugetlbfs", "binfmt_misc"};

bool is_quiet(mount const& m) {
  return std::find(quiet_types.begin(), quiet_types.end(), m.type) != quiet_types.end();
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

}  // namespace sluice::policy
