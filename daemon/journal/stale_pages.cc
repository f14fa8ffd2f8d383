// SPDX-License-Identifier: Apache-2.0
#include "journal/stale_pages.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::journal {

int write_cached(int fd) {
  constexpr unsigned all =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  return sync_file_range(fd, 0, 0, all) != 0 ? errno : 0;
}

void forget_cached(int fd) {
  for (int i = 0; i < 2; ++i) write_cached(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

int why_unwritten(int fd, page_set const& bytes) {
  struct statfs fs = {};
  if (fstatfs(fd, &fs) != 0) return errno;
  if (fs.f_type != EXT4_SUPER_MAGIC) return 0;
  constexpr unsigned extents_max = 64;
  std::vector<std::byte> room(sizeof(fiemap) + extents_max * sizeof(fiemap_extent));
  auto* const map = reinterpret_cast<fiemap*>(room.data());
  for (auto const& [first, end] : bytes.all())
    for (std::uint64_t at = first; at < end;) {
      *map = {};
      map->fm_start = at;
      map->fm_length = end - at;
      map->fm_extent_count = extents_max;
      if (ioctl(fd, FS_IOC_FIEMAP, map) != 0) return errno == EOPNOTSUPP ? 0 : errno;
      std::span const found(map->fm_extents, map->fm_mapped_extents);
      auto const is_unwritten = [](fiemap_extent const& e) {
        return (e.fe_flags & FIEMAP_EXTENT_UNWRITTEN) != 0;
      };
      if (std::any_of(found.begin(), found.end(), is_unwritten)) return ENODATA;
      if (found.empty()) break;
      at = found.back().fe_logical + found.back().fe_length;
    }
  return 0;
}

}  // namespace sluice::journal
