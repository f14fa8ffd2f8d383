// SPDX-License-Identifier: Apache-2.0
// What the random tests of the token bucket share. SEED repeats a run.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

#include "libinterpose/core/token_bucket.h"

namespace bucket_test {

using random_source = std::mt19937_64;

inline std::uint64_t seed() {
  char const* text = std::getenv("SEED");
  return text ? std::strtoull(text, nullptr, 10) : 20240601;
}

/// Units per second to Q24.40, without the library.
inline std::uint64_t q40(double units_per_second) {
  return static_cast<std::uint64_t>(units_per_second / 1e9 * 1099511627776.0);
}

/// Whether this memory can be a bucket that init() and set_curve() wrote.
inline bool plausible(sluice::core::bucket const& b) {
  using namespace sluice::core;
  constexpr auto relaxed = std::memory_order_relaxed;
  unsigned const slot = b.gen.load(std::memory_order_acquire) & 3;
  curve_slot const& s = b.ring[slot];
  return b.class_shift.load(relaxed) < 60 && b.leasing.load(relaxed) <= 1 &&
         (s.frac.load(relaxed) >> 40) == 0 && s.t0_ns.load(relaxed) >= 0 &&
         s.cap_units.load(relaxed) >= 1 && s.cap_units.load(relaxed) <= max_cap_units &&
         s.debt_ns.load(relaxed) <= long_slice_ns && s.quantum_ns.load(relaxed) <= long_slice_ns &&
         s.lease_end_ns.load(relaxed) >= 0 && s.after_lease.load(relaxed) <= 1 &&
         b.tail[slot].own_at_ns.load(relaxed) >= 0;
}

}  // namespace bucket_test
