// SPDX-License-Identifier: Apache-2.0
// Problem: waits span nanoseconds to an hour; percentiles must come from counters that many threads
// bump and that can be added up over threads, processes and nodes.
// Idea: four linear steps per power of two, up to 2^42 ns (73 minutes); the last step takes the
// rest. What stays true: fixed size, no heap; the steps are the same everywhere, so merging is
// adding; a percentile is off by less than a quarter of its value, and never above the largest
// value, which is kept as it is; any counter values are safe to read.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::core {

constexpr std::size_t histogram_steps = 164;

// The step a value falls into.
constexpr std::size_t histogram_step(std::uint64_t value) {
  if (value < 4) return static_cast<std::size_t>(value);
  unsigned exponent = static_cast<unsigned>(std::bit_width(value)) - 1;
  std::size_t step = (exponent - 1) * 4 + ((value >> (exponent - 2)) & 3);
  return step < histogram_steps ? step : histogram_steps - 1;
}

// The smallest value of a step.
constexpr std::uint64_t histogram_low(std::size_t step) {
  if (step < 4) return step;
  return std::uint64_t{4 + step % 4} << (step / 4 - 1);
}

// Plain counts, for sums and for looking.
struct histogram_counts {
  std::uint64_t count[histogram_steps];
  std::uint64_t most;  // the largest value; 0: not known

  constexpr std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (std::uint64_t n : count) sum += n;
    return sum;
  }

  constexpr void merge(histogram_counts const& other) {
    for (std::size_t i = 0; i < histogram_steps; ++i) count[i] += other.count[i];
    if (other.most > most) most = other.most;
  }

  // The value below which `share` (0 to 1) of all values lie, interpolated; 0 when empty.
  constexpr std::uint64_t percentile(double share) const {
    std::uint64_t const inner = interpolated(share);
    return most != 0 && inner > most ? most : inner;
  }

 private:
  constexpr std::uint64_t interpolated(double share) const {
    if (!(share > 0)) share = 0;
    if (share > 1) share = 1;
    double const rank = share * static_cast<double>(total());
    double below = 0;
    std::uint64_t answer = 0;
    for (std::size_t i = 0; i < histogram_steps; ++i) {
      if (count[i] == 0) continue;
      double const here = static_cast<double>(count[i]);
      double const low = static_cast<double>(histogram_low(i));
      double const width = static_cast<double>(histogram_low(i + 1)) - low - 1;
      if (below + here >= rank)
        return static_cast<std::uint64_t>(low + width * (rank - below) / here);
      below += here;
      answer = histogram_low(i + 1) - 1;
    }
    return answer;
  }
};

// Shared counters; zeroed memory is an empty one.
struct histogram {
  std::atomic<std::uint64_t> count[histogram_steps];
  std::atomic<std::uint64_t> most;

  // A value that stands for `times` of its kind.
  void add(std::uint64_t value, std::uint64_t times = 1) {
    count[histogram_step(value)].fetch_add(times, std::memory_order_relaxed);
    std::uint64_t seen = most.load(std::memory_order_relaxed);
    while (value > seen && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }

  void add_to(histogram_counts& sum) const {
    for (std::size_t i = 0; i < histogram_steps; ++i)
      sum.count[i] += count[i].load(std::memory_order_relaxed);
    std::uint64_t const value = most.load(std::memory_order_relaxed);
    if (value > sum.most) sum.most = value;
  }
};

static_assert(sizeof(histogram) == sizeof(histogram_counts));
static_assert(histogram_step(~std::uint64_t{0}) == histogram_steps - 1);

}  // namespace sluice::core
