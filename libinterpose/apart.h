// SPDX-License-Identifier: Apache-2.0
// Threads of one process share its directory, its root and its descriptors, until one of them takes
// copies of its own: unshare(), setns(), close_range(). From then on a name or a number may mean
// another file in each thread, so the process remembers neither: the kernel is asked at each call.
#pragma once

namespace sluice {

/// The calling thread has descriptors of its own.
void has_own_descriptors();
/// It has a directory, root or mounts of its own.
void has_own_names();

/// Before and after close_range(first, last, flags), which returned `result`.
void forget_range(unsigned first, unsigned last, int flags);
void note_own_range(long result, int flags);

template <class Real>
auto closing_range(unsigned first, unsigned last, int flags, Real&& real_call) {
  forget_range(first, last, flags);
  auto const result = real_call();
  note_own_range(result, flags);
  return result;
}

}  // namespace sluice
