// SPDX-License-Identifier: Apache-2.0
#include "journal/mount_points.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>

namespace sluice::journal {

namespace {

/// Ids of those that its path leads through; none: one of them is a user's to stop.
std::set<std::uint64_t> way_to(std::vector<mount_row> const& all, mount_row const& m) {
  std::set<std::uint64_t> way;
  for (mount_row const* at = &m; at != nullptr && way.insert(at->id).second;) {
    if (at->type.starts_with("fuse")) return {};
    auto const below = std::find_if(all.begin(), all.end(),
                                    [&](mount_row const& one) { return one.id == at->parent; });
    at = below == all.end() ? nullptr : &*below;
  }
  return way;
}

}  // namespace

descriptor reach(std::vector<mount_row> const& all, mount_row const& m) {
  std::set<std::uint64_t> const way = way_to(all, m);
  descriptor at(open("/", O_PATH | O_CLOEXEC));
  auto on = mount_id_of(at.get());
  for (auto const& part : std::filesystem::path(m.point).relative_path()) {
    at = descriptor(openat(at.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    auto const now = mount_id_of(at.get());
    if (!now || (now != on && !way.contains(*now))) return {};
    on = now;
  }
  return on == m.id ? std::move(at) : descriptor();
}

std::optional<std::string> path_below(std::string const& where, std::string const& path) {
  if (!lies_below(path, where)) return {};
  if (path == where) return ".";
  return path.substr(where == "/" ? 1 : where.size() + 1);
}

int open_below(int directory, char const* path, int flags) {
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, directory, path, &how, sizeof how));
}

int stat_below(int directory, char const* name, struct stat& st) {
  struct statx x = {};
  // What is mounted there is not asked: the kernel says what it knows.
  constexpr int unasked = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  if (statx(directory, name, unasked, STATX_INO, &x) != 0) return errno;
  if ((x.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) return EXDEV;
  st.st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
  st.st_ino = x.stx_ino;
  return 0;
}

descriptor mount_root::open_directory(std::string const& path) const {
  auto const below = path_below(where, path);
  if (!at || !below) return {};
  return descriptor(open_below(at.get(), below->c_str(), O_RDONLY | O_DIRECTORY));
}

mount_root root_above(std::string const& path, dev_t device) {
  auto const all = read_mounts();
  std::uint64_t const wanted = device_number(major(device), minor(device));
  std::vector<mount_row const*> above;
  for (auto const& m : all)
    if (m.device == wanted && path_below(m.point, path)) above.push_back(&m);
  // The deepest has it, and of those the last.
  std::stable_sort(above.begin(), above.end(),
                   [](auto* a, auto* b) { return a->point.size() < b->point.size(); });
  for (auto m = above.rbegin(); m != above.rend(); ++m)
    if (descriptor at = reach(all, **m)) return {(*m)->point, std::move(at)};
  return {};
}

std::string proc_name(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

std::string path_of(int fd) {
  char path[4096];
  ssize_t const n = readlink(proc_name(fd).c_str(), path, sizeof path);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : "?";
}

}  // namespace sluice::journal
