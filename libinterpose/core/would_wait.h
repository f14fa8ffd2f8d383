// SPDX-License-Identifier: Apache-2.0
// Problem: a limit that only counts (monitor) must say how much longer the job would have taken
// under it. But no call was held back, so calls come faster than they would have.
// Idea: a leaky bucket that spills. Each call pours in the time that the rate takes to pay for it,
// and the bucket drains as time goes by. The amount that does not fit is the wait. It is taken out
// again, because after such a wait the bucket would have drained by as much.
// What stays true: the waits of a job add up to the time that the rate takes for all its requests,
// less the time that passed meanwhile and what idle time had saved. The spread of calls over
// threads makes no difference. (Threads that wait at once each wait that long: a real limit shows
// more time then.)
#pragma once

#include <atomic>
#include <cstdint>

#include "service_curve.h"

namespace sluice::core {

struct spilled {
  bool is_delayed;
  std::uint64_t wait_ns;  // 0 also where nobody knows: the rate is 0
};

/// The time that `rate_q40` takes for so many units; at most a month.
constexpr std::int64_t time_for(std::uint64_t units, std::uint64_t rate_q40) {
  constexpr std::int64_t most_ns = std::int64_t{30} * 86'400 * 1'000'000'000;
  if (rate_q40 == 0) return most_ns;
  u128 const ns = (u128(units) << 40) / rate_q40;
  return ns > u128(most_ns) ? most_ns : static_cast<std::int64_t>(ns);
}

/// Asks for `units` at `now_ns`. `full_until_ns` is the bucket: when it will have drained. A
/// request that never `waits`, such as close, owes: nothing of it is taken out, and the next one
/// waits.
inline spilled spill(std::atomic<std::int64_t>& full_until_ns, curve const& c, std::uint64_t units,
                     std::int64_t now_ns, bool waits = true) {
  if (c.is_open(now_ns)) return {false, 0};
  std::uint64_t const rate_q40 = c.after(now_ns).rate_q40;
  if (rate_q40 == 0) return {waits, 0};
  std::int64_t const cost_ns = time_for(units, rate_q40);
  std::int64_t const room_ns = time_for(c.set.cap_units, rate_q40);
  std::int64_t seen = full_until_ns.load(std::memory_order_relaxed);
  for (int i = 0; i < retry_limit; ++i) {
    // As under a limit one call may overdraw, and the next one waits for it.
    std::int64_t const from_ns = seen > now_ns ? seen : now_ns;
    bool const is_full = from_ns - now_ns > room_ns;
    std::int64_t const wait_ns = waits && is_full ? from_ns - now_ns - room_ns : 0;
    std::int64_t const next_ns = from_ns - wait_ns + cost_ns;
    if (full_until_ns.compare_exchange_weak(seen, next_ns, std::memory_order_relaxed))
      return {wait_ns != 0, static_cast<std::uint64_t>(wait_ns)};
  }
  return {false, 0};
}

/// For how long the next request would wait; at most 0 while the bucket has room.
constexpr std::int64_t beyond_full_ns(std::int64_t full_until_ns, curve const& c,
                                      std::int64_t now_ns) {
  std::uint64_t const rate_q40 = c.after(now_ns).rate_q40;
  if (rate_q40 == 0 || full_until_ns <= now_ns) return 0;
  return full_until_ns - now_ns - time_for(c.set.cap_units, rate_q40);
}

/// Gives back what was not used.
inline void pour_back(std::atomic<std::int64_t>& full_until_ns, curve const& c, std::uint64_t units,
                      std::int64_t now_ns) {
  std::uint64_t const rate_q40 = c.after(now_ns).rate_q40;
  if (rate_q40 != 0) full_until_ns.fetch_sub(time_for(units, rate_q40), std::memory_order_relaxed);
}

}  // namespace sluice::core
