// SPDX-License-Identifier: Apache-2.0
// What the random tests of the token bucket share. SEED repeats a run.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

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

}  // namespace bucket_test
