// SPDX-License-Identifier: Apache-2.0
// One call, from the wrapper to its counters: enter() finds the place, books and waits; leave() counts what
// happened and settles bytes. Between the two stands the real call, and nothing is held.
#pragma once

#include <cerrno>
#include <type_traits>

#include "calls.h"
#include "place.h"
#include "state.h"

namespace sluice {

enum class when : std::uint8_t {
  before,     // wait, then call
  cancels,    // the same, and a wait is a cancellation point
  never,      // charge, do not delay: close, and what is settled late
};

/// One leg of a call in flight. Plain data: it may be abandoned at any moment.
struct visit {
  call id;
  core::op what;
  when delay;
  bool refused;             // RWF_NOWAIT and no tokens: the caller gets EAGAIN
  std::uint16_t entry;
  std::uint64_t bytes;      // booked in byte channels
  std::uint64_t rules;      // rules met
};

/// False: not ours, pass through. errno is untouched.
bool enter_place(visit& v, place const& where);
/// The same for an entry already found.
bool enter_entry(visit& v, unsigned entry, int fd, bool may_sleep);

/// Counts one call that moved `moved` bytes (data ops only).
void leave(visit const& v, bool failed, std::uint64_t moved);

/// Charges a finished call that was not delayed and lets its caller wait for the debt: stdio.
void settle_after(call id, core::op what, int fd, std::uint64_t bytes, bool failed);

/// Counts and charges `n` ops on an fd or place; may wait. For what hides many calls in one.
void charge(call id, core::op what, place const& where, std::uint64_t n);

template <class Result>
bool is_failure(Result r) {
  if constexpr (std::is_pointer_v<Result>)
    return r == nullptr || r == reinterpret_cast<Result>(-1);
  else
    return r == static_cast<Result>(-1);
}

template <class Result>
std::uint64_t moved_bytes(core::op what, Result r) {
  if constexpr (std::is_integral_v<Result>) {
    bool const data = what == core::op::read || what == core::op::write;
    if (data && !is_failure(r)) return static_cast<std::uint64_t>(r);
  }
  return 0;
}

}  // namespace sluice
