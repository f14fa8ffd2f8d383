// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same everywhere: the distributions of the standard library differ
// between libraries, its generators do not.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace sluice::trace {

class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : bits_(seed) {}

  /// From 0 up to, not including, 1.
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }
  /// Mean 0, deviation 1.
  double normal() {
    double const radius = std::sqrt(-2 * std::log1p(-uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace sluice::trace
