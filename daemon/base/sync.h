// SPDX-License-Identifier: Apache-2.0
// Syncs that report every loss. The kernel's return 0 in two cases in which everything may be lost:
// syncfs for a file system that was made read-only because its disk failed (btrfs, others with
// errors=remount-ro); and fsync and syncfs on ext4 when the commit they would wait for has failed
// just before. A program that begins a change of the file system gets the error, so we begin an
// empty change.
#pragma once

#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>

namespace sluice {

/// 0, or why nothing that is changed on the file system of `fd` gets to its disk any more. What
/// cannot be asked (another's file, no extended attributes) is no answer.
inline int why_given_up(int fd) {
  // Nobody has it, but to remove it begins a transaction.
  if (fremovexattr(fd, "user.sluice.none") == 0) return 0;
  bool const is_given_up = errno == EIO || errno == EROFS || errno == EUCLEAN || errno == ESHUTDOWN;
  return is_given_up ? errno : 0;
}

/// The same, and EROFS for a file system that is read-only: asked after a sync that returned 0.
inline int why_not_kept(int fd) {
  constexpr long is_read_only = 1;  // ST_RDONLY
  struct statfs fs = {};
  if (fstatfs(fd, &fs) != 0) return errno;
  return (fs.f_flags & is_read_only) != 0 ? EROFS : why_given_up(fd);
}

/// All of the file system of `fd` is on its disk: 0, or an errno.
inline int sync_file_system(int fd) { return syncfs(fd) != 0 ? errno : why_not_kept(fd); }

/// 0, or an errno.
inline int sync_file(int fd) { return fsync(fd) != 0 ? errno : why_given_up(fd); }

}  // namespace sluice
