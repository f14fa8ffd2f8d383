// SPDX-License-Identifier: Apache-2.0
// The timers of the lease protocol. `level` of an edge: 0 below the cluster, one more below each
// relay, whose children must lend for longer than it lends itself.
#pragma once

#include <cstdint>

namespace sluice::lease {

struct timers {
  std::int64_t lease_ns = 1'000'000'000;  // L: child, from sending the report that is answered
  std::int64_t believe_ns = 300'000'000;  // A: a report whose echo is older does not count
  std::int64_t cycle_ns = 100'000'000;
  std::int64_t silent_ns = 350'000'000;  // S: a parent silent for so long is no longer lent to
  std::int64_t grain_ns = 500'000;       // clock grain added to the ledger's lease
  std::int64_t drift_ppm = 1000;         // rho: clocks run within this of true
  unsigned level = 0;

  constexpr std::int64_t plus_drift(std::int64_t ns) const {
    return ns + ns / 1'000'000 * 2 * drift_ppm;
  }
  constexpr std::int64_t minus_drift(std::int64_t ns) const {
    return ns - ns / 1'000'000 * 2 * drift_ppm;
  }
  /// L': how long a parent must assume a grant in force, from issuing.
  constexpr std::int64_t ledger_ns() const { return plus_drift(lease_ns) + grain_ns; }
  /// M: how long a report lends the escrow, from sending it.
  constexpr std::int64_t lend_ns() const {
    return plus_drift(ledger_ns() +
                      (believe_ns + cycle_ns) * (1 + static_cast<std::int64_t>(level)));
  }
  /// Q: after a restart nothing is raised for so long.
  constexpr std::int64_t quiet_ns() const { return ledger_ns(); }
};

}  // namespace sluice::lease
