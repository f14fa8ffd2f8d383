// SPDX-License-Identifier: Apache-2.0
// The results of each interval, per stream, gathered from the records of the threads in any order.
// Intervals are a second; a long replay has longer ones, because pairs are merged when there would
// be too many. Pure.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "commands/replay/counters.h"
#include "core/histogram.h"

namespace sluice::replay {

struct interval_sum {
  std::uint64_t submitted = 0, done = 0, failed = 0, delayed = 0;
  std::int64_t lag_ns_max = 0;
  std::vector<std::pair<std::uint8_t, std::uint32_t>> took;  // step, count; few are used

  void add(tally const& t);
  void merge(interval_sum const& later);
  core::histogram_counts histogram() const;
};

struct stream_total {
  std::uint64_t submitted = 0, done = 0, failed = 0, delayed = 0;
  std::int64_t lag_ns_max = 0;
  double lag_ns_sum = 0;
  core::histogram_counts took = {};
};

class timeline {
 public:
  timeline(std::size_t streams, std::size_t intervals_most);
  /// As many intervals as a result may have, fewer of very many streams.
  explicit timeline(std::size_t streams);

  /// What was before second 0 is left out.
  void add(std::size_t stream, std::int64_t second, tally const& t);
  /// Something was due and not yet sent, so late already.
  void seen_late(std::size_t stream, std::int64_t second, std::int64_t lag_ns);

  double interval_s() const { return static_cast<double>(width_); }
  std::size_t intervals() const { return intervals_; }
  /// Of one stream; shorter than intervals() when nothing more happened.
  std::vector<interval_sum> const& of(std::size_t stream) const { return rows_[stream]; }
  stream_total const& total(std::size_t stream) const { return totals_[stream]; }

 private:
  interval_sum& at(std::size_t stream, std::int64_t second);
  void halve();

  std::size_t most_;
  std::int64_t width_ = 1;  // seconds
  std::size_t intervals_ = 0;
  std::vector<std::vector<interval_sum>> rows_;
  std::vector<stream_total> totals_;
};

}  // namespace sluice::replay
