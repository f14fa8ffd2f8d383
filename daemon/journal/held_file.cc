// SPDX-License-Identifier: Apache-2.0
#include "journal/held_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>

#include "base/sync.h"
#include "journal/home.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

namespace sluice::journal {

namespace {

struct cache_range {
  std::uint64_t offset, length;
};
struct cache_counts {
  std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

constexpr unsigned folio_order_max = 6;  // 256 KiB: more is not written twice
constexpr std::size_t folio_ranges_max = 16;

/// False: the kernel does not say.
bool count_in(int fd, std::uint64_t first, std::uint64_t end, cache_counts& counts) {
  counts = {};
  if (first >= end) return true;  // the kernel takes a length of 0 for all
  cache_range range = {first * page_bytes, (end - first) * page_bytes};
  return syscall(SYS_cachestat, fd, &range, &counts, 0) == 0;
}

std::int64_t dirty_in(int fd, std::uint64_t first, std::uint64_t end) {
  cache_counts counts;
  if (!count_in(fd, first, end, counts)) return -1;
  return static_cast<std::int64_t>(counts.dirty + counts.writeback);
}

void fill(struct stat& st, struct statx const& x) {
  st.st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
  st.st_ino = x.stx_ino;
  st.st_mode = x.stx_mode;
  st.st_nlink = x.stx_nlink;
  st.st_uid = x.stx_uid;
  st.st_gid = x.stx_gid;
  st.st_size = static_cast<off_t>(x.stx_size);
  st.st_blocks = static_cast<blkcnt_t>(x.stx_blocks);
  st.st_mtim = {x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec};
  st.st_ctim = {x.stx_ctime.tv_sec, x.stx_ctime.tv_nsec};
}

/// As fstat, of what does not change with its bytes. Nobody is asked: the server of a user's file
/// system may never answer.
bool look_unasked(int fd, struct stat& st) {
  struct statx x = {};
  constexpr int unasked = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  if (statx(fd, "", unasked, STATX_BASIC_STATS, &x) != 0) return false;
  fill(st, x);
  return true;
}

}  // namespace

descriptor take_descriptor(request const& r) {
  return r.from->asking().take(r.pid, r.from->owner(), r.fd);
}

descriptor fetch(request const& r, bool is_directory, struct stat& st) {
  bool may_write = false;
  descriptor at = r.from->asking().look_up(r.pid, r.from->owner(), r.fd, may_write);
  if (!at || !look_unasked(at.get(), st)) return {};
  if (!(is_directory ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode))) return {};
  if (device_word(st) != r.device || st.st_ino != r.inode) return {};
  // Who may not write a file has no part in what becomes durable of it.
  return is_directory || may_write ? std::move(at) : descriptor();
}

descriptor open_fetched(int at, bool is_directory) {
  // What is opened there is what the descriptor is of, whatever has its name.
  std::string const path = fmt::format("/proc/self/fd/{}", at);
  int const flags =
      O_RDONLY | O_CLOEXEC | O_NOATIME | O_NONBLOCK | (is_directory ? O_DIRECTORY : 0);
  descriptor ours(open(path.c_str(), flags));
  if (!ours && errno == EPERM) ours = descriptor(open(path.c_str(), flags & ~O_NOATIME));
  return ours;
}

int sync_held_file(held_file& f, bool only_bytes, bool has_records) {
  std::lock_guard const held(f.syncing);
  if (f.refused != 0) return f.refused;
  int const failed = only_bytes ? fdatasync(f.fd.get()) : fsync(f.fd.get());
  int const error = failed == 0 ? 0 : errno;
  if (has_records) f.refused = error;
  return error;
}

descriptor open_beside(int fd, struct stat const& st) {
  std::string directory, name;
  if (!find_name(fd, st, directory, name)) return {};
  return root_above(directory, st.st_dev).open_directory(directory);
}

int sync_held_mount(held_mount& m) {
  std::lock_guard const held(m.syncing);
  if (m.refused == 0) m.refused = sync_file_system(m.asked());
  return m.refused;
}

namespace {

/// As mountinfo has it; empty: it is not there.
std::string type_of_device(dev_t device) {
  std::uint64_t const wanted = device_number(major(device), minor(device));
  for (auto const& m : read_mounts())
    if (m.device == wanted) return m.type;
  return {};
}

bool is_kernel_since(int major_number, int minor_number) {
  utsname kernel = {};
  int has_major = 0, has_minor = 0;
  if (uname(&kernel) != 0) return false;
  if (std::sscanf(kernel.release, "%d.%d", &has_major, &has_minor) != 2) return false;
  return std::pair(has_major, has_minor) >= std::pair(major_number, minor_number);
}

}  // namespace

bool has_fine_times(int fd, struct stat const& st) {
  static bool const is_known_to_kernel = is_kernel_since(6, 13);
  struct statfs fs = {};
  if (!is_known_to_kernel || fstatfs(fd, &fs) != 0) return false;
  if (fs.f_type == XFS_SUPER_MAGIC) return true;
  return fs.f_type == EXT4_SUPER_MAGIC && type_of_device(st.st_dev) == "ext4";  // not ext2, ext3
}

birth birth_of(int fd) {
  struct stat st = {};
  birth born;
  return look_at(fd, st, born) ? born : birth{};
}

bool look_at(int fd, struct stat& st, birth& born) {
  struct statx x = {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &x) != 0) return false;
  fill(st, x);
  born = {};
  if ((x.stx_mask & STATX_BTIME) != 0)
    born = {abi::birth_word(x.stx_ino, x.stx_btime.tv_sec, x.stx_btime.tv_nsec),
            ns_of(x.stx_btime)};
  return true;
}

std::int64_t dirty_pages(int fd, page_ranges const& but, std::uint64_t end, std::uint64_t* cached) {
  std::uint64_t at = 0, dirty = 0, seen = 0;
  auto const count_until = [&](std::uint64_t next) {
    cache_counts counts;
    if (!count_in(fd, at, next, counts)) return false;
    dirty += counts.dirty + counts.writeback;
    seen += counts.cached;
    return true;
  };
  for (auto const& [first, behind] : but) {
    if (!count_until(std::min(first, end))) return -1;
    at = behind;
  }
  if (!count_until(end)) return -1;
  if (cached != nullptr) *cached = seen;
  return static_cast<std::int64_t>(dirty);
}

std::int64_t pages_under_way(int fd, std::uint64_t first, std::uint64_t end) {
  cache_counts counts;
  return count_in(fd, first, end, counts) ? static_cast<std::int64_t>(counts.writeback) : -1;
}

void add_folios(int fd, page_set& pages) {
  if (pages.all().size() > folio_ranges_max) return;
  page_set const ours = pages;
  for (auto const& [first, end] : ours.all())
    for (std::uint64_t const page : {first, end - 1})
      for (unsigned order = folio_order_max; order > 0; --order) {
        std::uint64_t const size = std::uint64_t{1} << order, from = page & ~(size - 1);
        if (dirty_in(fd, from, from + size) < static_cast<std::int64_t>(size)) continue;
        pages.add(from, from + size);
        break;
      }
}

bool find_name(int fd, struct stat const& st, std::string& directory, std::string& name) {
  char path[PATH_MAX];
  ssize_t const n = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path, sizeof path);
  if (n <= 0 || n == sizeof path || st.st_nlink != 1) return false;
  return split_name({path, static_cast<std::size_t>(n)}, directory, name);
}

bool split_name(std::string const& path, std::string& directory, std::string& name) {
  std::size_t const slash = path.rfind('/');
  if (slash == path.npos || path[0] != '/') return false;
  directory = slash == 0 ? "/" : path.substr(0, slash);
  name = path.substr(slash + 1);
  return is_name(name);
}

}  // namespace sluice::journal
