// SPDX-License-Identifier: Apache-2.0
// Builds a trace from amounts that come one by one, in any order of time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "commands/trace/trace.h"

namespace sluice::trace {

class grid {
 public:
  explicit grid(std::size_t intervals_max = most_intervals) : intervals_max_(intervals_max) {}

  /// Adds to one count. Null, or why the trace cannot hold it (a limit is exceeded).
  char const* add(std::int64_t interval, std::string_view job, unsigned op, double amount);

  bool is_empty() const { return rows_.empty(); }
  std::int64_t first() const { return first_; }
  /// The trace; start_unix_s and facts are the caller's.
  trace take(double interval_s);

 private:
  char const* reach(std::int64_t interval);
  char const* find_column(std::string_view job, unsigned op, std::size_t& index);

  std::size_t intervals_max_;
  std::int64_t first_ = 0;  // the interval of rows_[0]
  std::vector<std::vector<double>> rows_;
  std::vector<column> columns_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_job_;  // op → column + 1
};

/// Amounts at moments or over stretches of time, in seconds of any one clock.
class timeline {
 public:
  explicit timeline(double interval_s, std::size_t intervals_max = most_intervals)
      : interval_s_(interval_s), grid_(intervals_max) {}

  char const* at(double when_s, std::string_view job, unsigned op, double amount);
  /// Evenly over the time between; all of it at once when they are equal.
  char const* over(double from_s, double to_s, std::string_view job, unsigned op, double amount);

  bool is_empty() const { return grid_.is_empty(); }
  /// `is_unix`: the clock counts from 1970.
  trace take(bool is_unix);

 private:
  char const* index_of(double when_s, std::int64_t& index) const;

  double interval_s_;
  grid grid_;
};

}  // namespace sluice::trace
