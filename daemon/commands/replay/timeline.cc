// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/timeline.h"

#include <algorithm>

namespace sluice::replay {

namespace {

constexpr std::size_t most_intervals = 3600;
constexpr std::size_t most_sums = 1'000'000;  // some 150 bytes each

void add_step(std::vector<std::pair<std::uint8_t, std::uint32_t>>& to, std::uint8_t step,
              std::uint32_t count) {
  for (auto& [at, sum] : to)
    if (at == step) {
      sum += count;
      return;
    }
  to.emplace_back(step, count);
}

}  // namespace

static_assert(core::histogram_steps <= 256, "a step fits a byte");

void interval_sum::add(tally const& t) {
  submitted += t.submitted;
  done += t.done;
  failed += t.failed;
  delayed += t.delayed;
  lag_ns_max = std::max(lag_ns_max, t.lag_ns_max);
  for (std::size_t step = 0; step < core::histogram_steps; ++step)
    if (t.took[step] != 0) add_step(took, static_cast<std::uint8_t>(step), t.took[step]);
}

void interval_sum::merge(interval_sum const& later) {
  submitted += later.submitted;
  done += later.done;
  failed += later.failed;
  delayed += later.delayed;
  lag_ns_max = std::max(lag_ns_max, later.lag_ns_max);
  for (auto const& [step, count] : later.took) add_step(took, step, count);
}

core::histogram_counts interval_sum::histogram() const {
  core::histogram_counts h = {};
  for (auto const& [step, count] : took) h.count[step] += count;
  return h;
}

timeline::timeline(std::size_t streams)
    : timeline(streams, std::clamp<std::size_t>(most_sums / std::max<std::size_t>(1, streams), 60,
                                                most_intervals)) {}

timeline::timeline(std::size_t streams, std::size_t intervals_most)
    : most_(intervals_most), rows_(streams), totals_(streams) {}

void timeline::halve() {
  width_ *= 2;
  intervals_ = (intervals_ + 1) / 2;
  for (auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i % 2 != 0)
        row[i / 2].merge(row[i]);
      else if (i != 0)
        row[i / 2] = std::move(row[i]);
    }
    row.resize((row.size() + 1) / 2);
  }
}

interval_sum& timeline::at(std::size_t stream, std::int64_t second) {
  while (static_cast<std::size_t>(second / width_) >= most_) halve();
  auto const i = static_cast<std::size_t>(second / width_);
  auto& row = rows_[stream];
  if (row.size() <= i) row.resize(i + 1);
  intervals_ = std::max(intervals_, i + 1);
  return row[i];
}

void timeline::add(std::size_t stream, std::int64_t second, tally const& t) {
  if (second < 0) return;
  at(stream, second).add(t);
  stream_total& total = totals_[stream];
  total.submitted += t.submitted;
  total.done += t.done;
  total.failed += t.failed;
  total.delayed += t.delayed;
  total.lag_ns_max = std::max(total.lag_ns_max, t.lag_ns_max);
  total.lag_ns_sum += static_cast<double>(t.lag_ns_sum);
  for (std::size_t step = 0; step < core::histogram_steps; ++step)
    total.took.count[step] += t.took[step];
}

void timeline::seen_late(std::size_t stream, std::int64_t second, std::int64_t lag_ns) {
  if (second < 0 || lag_ns <= 0) return;
  interval_sum& i = at(stream, second);
  i.lag_ns_max = std::max(i.lag_ns_max, lag_ns);
  totals_[stream].lag_ns_max = std::max(totals_[stream].lag_ns_max, lag_ns);
}

}  // namespace sluice::replay
