// SPDX-License-Identifier: Apache-2.0
// The timers of the lease protocol. `level` of an edge: 0 below the cluster, one more below each
// relay, whose children must lend for longer than it lends itself. Both ends of an edge compute
// with the same cycle, lease and level: the parent's welcome announces them.
#pragma once

#include <cstdint>

namespace sluice::lease {

struct timers {
  std::int64_t lease_ns = 1'000'000'000;  // L: child, from sending the report that is answered
  std::int64_t believe_ns = 300'000'000;  // A: a report whose echo is older does not count
  std::int64_t cycle_ns = 100'000'000;
  std::int64_t silent_ns = 350'000'000;  // S: a parent silent, or bare, for so long gets no lends
  std::int64_t grain_ns = 500'000;       // clock grain added to the ledger's lease
  std::int64_t drift_ppm = 1000;         // rho: clocks run within this of true
  unsigned level = 0;

  /// Two clocks differ by 2 rho. Rounded so that no margin is lost.
  constexpr std::int64_t plus_drift(std::int64_t ns) const { return ns + drift(ns); }
  constexpr std::int64_t minus_drift(std::int64_t ns) const { return ns - drift(ns); }
  /// L': how long a parent must assume a grant in force, from issuing.
  constexpr std::int64_t ledger_ns() const { return plus_drift(lease_ns) + grain_ns; }
  /// M: how long a report lends the escrow, from sending it.
  constexpr std::int64_t lend_ns() const { return lend_ns(level); }
  constexpr std::int64_t lend_ns(unsigned of_level) const {
    return plus_drift(ledger_ns() +
                      (believe_ns + cycle_ns) * (1 + static_cast<std::int64_t>(of_level)));
  }
  /// As long, for a child that starts and does not know yet below how many relays it lent: below
  /// two at most, or the welcome says so before this is over.
  constexpr std::int64_t start_ns() const { return lend_ns(level < 2 ? 2 : level); }
  /// A child believed within this takes part in allocations. Steady, it reports once a cycle.
  constexpr std::int64_t live_ns() const {
    return cycle_ns > 200'000'000 ? cycle_ns / 2 * 5 : 500'000'000;
  }
  /// Q: after a restart nothing is raised for so long.
  constexpr std::int64_t quiet_ns() const { return ledger_ns(); }

 private:
  constexpr std::int64_t drift(std::int64_t ns) const {
    return (ns / 1'000'000 + 1) * 2 * drift_ppm;
  }
};

/// A is at least 0.3 s: a report may be one cycle and a round trip older than what it echoes.
constexpr timers timers_of(std::int64_t cycle_ns, std::int64_t lease_ns, unsigned level) {
  timers t;
  t.cycle_ns = cycle_ns;
  t.lease_ns = lease_ns;
  t.level = level;
  if (t.believe_ns < 3 * cycle_ns) t.believe_ns = 3 * cycle_ns;
  t.silent_ns = 3 * cycle_ns + 50'000'000;
  return t;
}

}  // namespace sluice::lease
