// SPDX-License-Identifier: Apache-2.0
// For threads that may hang in the kernel for ever. A process that is killed keeps its descriptors
// as long as one thread shares them: with them its locks and ports, which the next one needs.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <span>
#include <utility>

namespace sluice {

/// From now on this thread has a table of descriptors of its own, with 0 to 2 and `kept` (sorted,
/// above 2) in it. False: an old kernel (before 5.9) leaves it as it is.
inline bool leave_descriptors(std::span<int const> kept = {}) {
  unsigned first = 3, flags = 2;  // CLOSE_RANGE_UNSHARE, which the first range asks for
  auto const close_to = [&](unsigned last) {
    if (first > last) return true;
    return syscall(SYS_close_range, first, last, std::exchange(flags, 0)) == 0;
  };
  for (int const fd : kept) {
    auto const next = static_cast<unsigned>(fd);
    if (!close_to(next - 1)) return false;
    first = next + 1;
  }
  return close_to(~0u);
}

}  // namespace sluice
