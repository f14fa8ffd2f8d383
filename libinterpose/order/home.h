// SPDX-License-Identifier: Apache-2.0
// The stage's own work at home: the kernel's syncs, and the fallback of abi/README.md when the
// daemon is gone: flag, fsync, mark, fsync. The mark tells recovery to leave a file alone. Raw
// system calls: nothing here sets errno.
#pragma once

#include <errno.h>

#include "order/notes.h"

namespace sluice::order {

/// A sync's, that says bytes are lost. EROFS: the file system gave up.
constexpr bool is_of_disk(int error) {
  return error == EIO || error == ENOSPC || error == EDQUOT || error == EROFS;
}

/// Bytes can be written by this descriptor.
bool is_written_by(int fd);

/// 0, or the error number. The kernel tells a descriptor once that a write failed: a drain, of
/// which nobody sees the result, syncs the file system instead, and the program's fsync is told.
int sync_now(int fd, abi::order_request kind);

/// The same for a file that the journal may have as well. What the journal has and home lost is not
/// made good by a sync of what is left: an error is told until a daemon has replayed the journal,
/// also one that nobody but us has seen.
int sync_own(int fd, file_now const& f, abi::order_request kind);

/// The daemon is there and did nothing: the same, unless the journal has some of the file.
int sync_sent_back(int fd, file_now const& f, abi::order_request kind);

/// The daemon is dead, silent, or could not: 0 or the error number of the kernel's fsync.
int without_daemon(int fd, file_now const& f, abi::order_request kind);

/// 0, or the error number: what was written before is at home wherever the journal has something of
/// it. With `is_synced` sync(2) has done that, and the durable targets only tell of errors. Other
/// file systems are not waited for: they may hang. `also`: a device that has to be among them; 0
/// none.
int sync_home(bool is_synced, std::uint64_t also);

/// Nobody is there to empty the journal, and what is synced now must not be undone by it: when all
/// that it has is safe at home, the journal says so of itself. Noted first, so that a daemon that
/// was only slow acknowledges nothing that it would have to hold. False: that was done before.
bool begin_void();
void end_void(bool is_synced);

}  // namespace sluice::order
