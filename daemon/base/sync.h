// SPDX-License-Identifier: Apache-2.0
// Syncs that report every loss. The kernel's return 0 in two cases in which everything may be lost:
// syncfs for a file system that was made read-only because its disk failed (btrfs, others with
// errors=remount-ro); and fsync and syncfs on ext4 when the commit they would wait for has failed
// just before. A program that begins a change of the file system gets the error, so we begin an
// empty change.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>

namespace sluice {

/// It is ours, and nobody else may read or write it, so nobody else can hold its lock
/// (SECURITY.md). An access list shows in the bits of the group.
inline bool is_private(int fd) {
  struct stat st = {};
  return fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
         (st.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH)) == 0;
}

/// A file without a name on the file system of that directory: -1 and an errno where there is none
/// to be had. The directory's lock is not taken.
inline int open_nameless(int directory) {
  return openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/// 0, or why nothing that is changed on the file system of `fd` gets to its disk any more. What
/// cannot be asked (another's file, no extended attributes) is no answer. Instead of a directory
/// that others may list a file without a name is asked, which nobody can hold. Where there is none
/// to be had `fd` is asked all the same: to wait is better than to take what is lost for safe.
inline int why_given_up(int fd) {
  constexpr auto said = [](int error) {
    bool const is_given_up =
        error == EIO || error == EROFS || error == EUCLEAN || error == ESHUTDOWN;
    return is_given_up ? error : 0;
  };
  // Nobody has it, but to remove it begins a transaction.
  constexpr auto ask = [](int file) {
    return fremovexattr(file, "user.sluice.none") == 0 ? 0 : errno;
  };
  if (is_private(fd)) return said(ask(fd));
  int const own = open_nameless(fd);
  // Who may make nothing in a directory may not ask it either.
  if (own < 0 && (said(errno) != 0 || errno == EACCES)) return said(errno);
  int const error = ask(own < 0 ? fd : own);
  if (own >= 0) close(own);
  return said(error);
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

/// 0, or an errno. `asked`: see why_given_up(), of the same file system.
inline int sync_file(int fd, int asked) { return fsync(fd) != 0 ? errno : why_given_up(asked); }

}  // namespace sluice
