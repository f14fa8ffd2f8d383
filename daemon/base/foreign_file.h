// SPDX-License-Identifier: Apache-2.0
// The only way to open a file that a user of this node owns: a segment, or an area beside it. Its
// owner may hold a lease on it, put a pipe or a link in its place, or give it away while we look.
// What stays true: the open never waits and follows no link and no mount, and the opened file is a
// regular file of the expected owner.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "base/rights.h"

namespace sluice {

inline constexpr std::int64_t any_owner = -1;

struct foreign_file {
  descriptor fd;        // none: it could not be opened, `error` says why
  struct stat st = {};  // of what was opened
  int error = 0;        // EWOULDBLOCK: its owner holds a lease, which the kernel ends now: later
  explicit operator bool() const { return static_cast<bool>(fd); }
};

/// Nothing that its owner mounted over it, such as a FUSE that does not answer: EXDEV.
descriptor open_here(std::string const& path, int flags);

/// A file has that name, whatever is mounted over it: nobody is asked.
inline bool is_here(std::string const& path) {
  return open_here(path, O_PATH | O_NOFOLLOW | O_CLOEXEC) || errno == EXDEV;
}

/// `access`: O_RDONLY or O_RDWR. `owner`: the uid that it must have, or any_owner. EPERM: it is
/// another's, or no regular file.
inline foreign_file open_foreign(std::string const& path, int access, std::int64_t owner) {
  foreign_file out;
  int const flags = access | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
  auto const try_it = [&] { out.fd = open_here(path, flags); };
  try_it();  // most looks are for what is not there: no thread wakes for those
  if (!out.fd && errno == EACCES) with_rights(try_it);
  if (!out.fd || fstat(out.fd.get(), &out.st) != 0) {
    out.error = errno;
    out.fd = descriptor();
  } else if (!S_ISREG(out.st.st_mode) || (owner != any_owner && out.st.st_uid != owner)) {
    out.error = EPERM;
    out.fd = descriptor();
  }
  return out;
}

}  // namespace sluice
