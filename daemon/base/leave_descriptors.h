// SPDX-License-Identifier: Apache-2.0
// For threads that may hang in the kernel for ever. A process that is killed keeps its descriptors
// as long as one thread shares them: with them its locks and ports, which the next one needs.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

namespace sluice {

/// From now on this thread has a table of descriptors of its own, with 0 to 2 in it. An old kernel
/// (before 5.9) leaves it as it is.
inline void leave_descriptors() {
  constexpr unsigned first = 3, last = ~0u, unshare = 2;  // CLOSE_RANGE_UNSHARE
  syscall(SYS_close_range, first, last, unshare);
}

}  // namespace sluice
