// SPDX-License-Identifier: Apache-2.0
// How long the real calls take: "is it sluice, or the file system?" Reading a clock twice costs as
// much as all else the stage does in a call, so a thread times one call of 64 on average. The gap
// is drawn each time, so that a program whose calls repeat is not always timed at the same one. It
// begins with its first call and widens its gaps to that, so that a short program is seen too. A
// sample stands for the calls of its gap and itself: counts and sums are right on average, per op
// and target. An fsync takes so long that each is timed. The call after a slow one is timed too:
// the clock costs nothing beside it, and who steers a capacity by these times cannot wait.
// What happens inside libc (stdio, ftw, AIO) is timed where a call shows it.
#pragma once

#include "clock.h"
#include "state.h"
#include "visit.h"

namespace sluice::times {

inline constexpr std::uint32_t longest_gap = 127;  // 63.5 on average
inline constexpr std::int64_t slow_ns = 20'000;    // 400 times what two looks at the clock take

/// A counted call is about to be made: whether it is timed, and since when.
void begin(visit& v);
/// It has returned.
[[gnu::cold]] void note(visit const& v, bool failed, std::uint64_t moved);

/// Where the call begins before it is known whether it is one (stdio): the time, when the next
/// counted call is to be timed.
inline std::int64_t begin_early() { return self.untimed_left <= 0 ? now_ns() : 0; }

}  // namespace sluice::times
