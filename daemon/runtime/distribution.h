// SPDX-License-Identifier: Apache-2.0
// The distribution of times as a Prometheus histogram: counts between bounds that never change.
// Each bound is the edge of a step of core::histogram, so no count is split.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/histogram.h"

namespace sluice::runtime {

struct distribution {
  static constexpr std::size_t bounds = 13;  // 1.024 us, each four times the one before, 17.2 s
  static constexpr std::uint64_t bound_ns(std::size_t i) { return std::uint64_t{1024} << 2 * i; }

  std::array<double, bounds + 1> count = {};  // the last: beyond all bounds
  double sum_s = 0;

  static distribution of(core::histogram_counts const& h, std::uint64_t sum_ns) {
    distribution d;
    std::size_t at = 0;
    for (std::size_t step = 0; step < core::histogram_steps; ++step) {
      while (at < bounds && core::histogram_low(step) >= bound_ns(at)) ++at;
      d.count[at] += static_cast<double>(h.count[step]);
    }
    d.sum_s = static_cast<double>(sum_ns) / 1e9;
    return d;
  }
  double total() const {
    double sum = 0;
    for (double n : count) sum += n;
    return sum;
  }
  void add(distribution const& more) {
    for (std::size_t i = 0; i < count.size(); ++i) count[i] += more.count[i];
    sum_s += more.sum_s;
  }
};

}  // namespace sluice::runtime
