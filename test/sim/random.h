// SPDX-License-Identifier: Apache-2.0
// A generator whose sequence is the same everywhere (splitmix64), for runs named by their seed.
#pragma once

#include <cstdint>

namespace sluice::sim {

class random {
 public:
  explicit random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// In [0, n); 0 for n = 0.
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  /// True in `per_million` of a million cases.
  bool chance(std::uint32_t per_million) { return below(1'000'000) < per_million; }

 private:
  std::uint64_t state_;
};

}  // namespace sluice::sim
