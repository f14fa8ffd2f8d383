// SPDX-License-Identifier: Apache-2.0
// syncfs that tells. The kernel's returns 0 for a file system that it has made read-only because
// its disk failed (btrfs, and others mounted with errors=remount-ro), whatever is lost of it.
#pragma once

#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

namespace sluice {

/// All of the file system of `fd` is on its disk: 0, or an errno; EROFS for one that is read-only.
inline int sync_file_system(int fd) {
  constexpr long is_read_only = 1;  // ST_RDONLY
  struct statfs fs = {};
  if (syncfs(fd) != 0 || fstatfs(fd, &fs) != 0) return errno;
  return (fs.f_flags & is_read_only) != 0 ? EROFS : 0;
}

}  // namespace sluice
