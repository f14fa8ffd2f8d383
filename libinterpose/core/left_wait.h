// SPDX-License-Identifier: Apache-2.0
// Problem: a thread begins to wait while its last wait has not ended. Either a handler interrupted
// that one, and will go back to it, or somebody jumped out of it (siglongjmp).
// Idea: the stack tells. A handler runs below the wait, with the kernel's record of what it
// interrupted between the two. Whoever has jumped out is above, or at the same place. Of a stack
// that the program made itself, for a fiber, that is not known: the next one may lie beside it.
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

/// The ends of the stacks that a thread may have been given, which grow down; 0: it has none.
struct given_stacks {
  std::uintptr_t first = 0, own = 0;  // of the process; of a thread that began later
  static constexpr std::uintptr_t most_of_first = 64 << 20, most_of_own = 8 << 20;
  constexpr bool have(std::uintptr_t a, std::uintptr_t b) const {
    auto const is_in = [](std::uintptr_t end, std::uintptr_t most, std::uintptr_t at) {
      return at < end && end - at <= most;
    };
    return (is_in(first, most_of_first, a) && is_in(first, most_of_first, b)) ||
           (is_in(own, most_of_own, a) && is_in(own, most_of_own, b));
  }
};

/// Whether a wait at `then` is over, now that the same thread begins one at `now`: addresses of
/// frames.
constexpr bool is_over(std::uintptr_t then, std::uintptr_t now, signal_stack const& signals,
                       given_stacks const& given) {
  constexpr std::uintptr_t least_record = 1024;  // of any kernel, with what a handler needs itself
  constexpr std::uintptr_t near = 64 << 10;      // further away it may be another stack
  bool const was_on_signals = signals.has(then);
  if (signals.is_in_use != was_on_signals) return was_on_signals;
  if (!was_on_signals && !given.have(then, now)) return false;
  return now - then + least_record < near;
}

}  // namespace sluice::core
