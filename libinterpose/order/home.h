// SPDX-License-Identifier: Apache-2.0
// The stage's own work at home: the kernel's syncs, and the mark that tells recovery of them. Raw
// system calls: nothing here sets errno.
#pragma once

#include <errno.h>

#include "order/notes.h"

namespace sluice::order {

/// A sync's, that says bytes are lost. EROFS: the file system gave up.
constexpr bool is_of_disk(int error) {
  return error == EIO || error == ENOSPC || error == EDQUOT || error == EROFS;
}

bool is_written_by(int fd);

/// 0, or the error number. The kernel tells a descriptor once that a write failed: a drain, of
/// which nobody sees the result, syncs the file system instead, and the program's fsync is told.
int sync_now(int fd, abi::order_request kind);

/// Recovery is to leave this file alone. The generation is read while we are counted in. 0, or the
/// error number.
int set_mark(int fd, file_now const& f);

}  // namespace sluice::order
