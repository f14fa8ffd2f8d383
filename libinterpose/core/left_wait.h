// SPDX-License-Identifier: Apache-2.0
// Problem: a thread begins to wait while its last wait has not ended. Either a handler interrupted
// that one, and will go back to it, or somebody jumped out of it (siglongjmp).
// Idea: the stack tells. A handler runs below the wait, with the kernel's record of what it
// interrupted between the two. Whoever has jumped out is above, or at the same place.
// What stays true: in doubt the last wait is not over.
#pragma once

#include <cstdint>

namespace sluice::core {

/// The alternate signal stack of a thread; size 0: none.
struct signal_stack {
  std::uintptr_t low = 0, size = 0;
  bool is_in_use = false;  // the thread runs on it
  constexpr bool has(std::uintptr_t frame) const { return frame - low < size; }
};

/// Whether a wait at `then` is over, now that the same thread begins one at `now`: addresses of
/// frames, on a stack that grows down.
constexpr bool is_over(std::uintptr_t then, std::uintptr_t now, signal_stack const& signals) {
  constexpr std::uintptr_t least_record = 1024;  // of any kernel, with what a handler needs itself
  constexpr std::uintptr_t near = 64 << 10;      // further away it may be another stack
  bool const was_on_signals = signals.has(then);
  if (signals.is_in_use != was_on_signals) return was_on_signals;
  return now - then + least_record < near;
}

}  // namespace sluice::core
