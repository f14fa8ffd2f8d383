// SPDX-License-Identifier: Apache-2.0
#include "commands/trace/grid.h"

#include <algorithm>
#include <cmath>

namespace sluice::trace {

namespace {

constexpr char const too_long[] =
    "the trace would have more than 4194304 intervals; use a longer interval";
constexpr char const too_wide[] =
    "more than 8192 columns (jobs times operations); sum over jobs, or split the file";
constexpr char const too_large[] =
    "more than 33554432 counts (intervals times columns); use a longer interval or split the file";
constexpr char const too_much[] = "the sum of one interval is larger than 1e18";
constexpr char const no_time[] = "the time is out of range";

}  // namespace

char const* grid::reach(std::int64_t interval) {
  auto const most = static_cast<std::int64_t>(intervals_max_);
  if (rows_.empty()) first_ = interval;
  if (interval < first_) {
    if (first_ - interval + static_cast<std::int64_t>(rows_.size()) > most) return too_long;
    rows_.insert(rows_.begin(), static_cast<std::size_t>(first_ - interval), {});
    first_ = interval;
  }
  if (interval - first_ >= most) return too_long;
  auto const wanted = static_cast<std::size_t>(interval - first_) + 1;
  if (wanted > rows_.size()) rows_.resize(wanted);
  return rows_.size() * columns_.size() > most_cells ? too_large : nullptr;
}

char const* grid::find_column(std::string_view job, unsigned op, std::size_t& index) {
  auto found = by_job_.find(job);
  if (found == by_job_.end())
    found = by_job_.emplace(std::string(job), std::vector<std::size_t>(op_count)).first;
  std::size_t& place = found->second[op];
  if (place == 0) {
    if (columns_.size() == most_columns) return too_wide;
    if ((columns_.size() + 1) * rows_.size() > most_cells) return too_large;
    columns_.push_back({found->first, op});
    place = columns_.size();
  }
  index = place - 1;
  return nullptr;
}

char const* grid::add(std::int64_t interval, std::string_view job, unsigned op, double amount) {
  if (char const* why = reach(interval)) return why;
  std::size_t index = 0;
  if (char const* why = find_column(job, op, index)) return why;
  auto& row = rows_[static_cast<std::size_t>(interval - first_)];
  if (row.size() <= index) row.resize(columns_.size());
  row[index] += amount;
  return row[index] > most_count ? too_much : nullptr;
}

trace grid::take(double interval_s) {
  trace t;
  t.interval_s = interval_s;
  t.columns = std::move(columns_);
  t.counts = std::move(rows_);
  for (auto& row : t.counts) row.resize(t.columns.size());
  return t;
}

char const* timeline::index_of(double when_s, std::int64_t& index) const {
  double const at = std::floor(when_s / interval_s_);
  if (!(std::abs(at) < 1e17)) return no_time;
  index = static_cast<std::int64_t>(at);
  return nullptr;
}

char const* timeline::at(double when_s, std::string_view job, unsigned op, double amount) {
  std::int64_t index = 0;
  if (char const* why = index_of(when_s, index)) return why;
  return grid_.add(index, job, op, amount);
}

char const* timeline::over(double from_s, double to_s, std::string_view job, unsigned op,
                           double amount) {
  std::int64_t first = 0, last = 0;
  if (char const* why = index_of(from_s, first)) return why;
  if (char const* why = index_of(to_s, last)) return why;
  if (last <= first) return grid_.add(first, job, op, amount);
  if (last - first > static_cast<std::int64_t>(most_intervals)) return too_long;
  double const per_s = amount / (to_s - from_s);
  for (auto i = first; i <= last; ++i) {
    double const from = std::max(from_s, static_cast<double>(i) * interval_s_);
    double const to = std::min(to_s, static_cast<double>(i + 1) * interval_s_);
    if (to <= from && i != first) continue;
    if (char const* why = grid_.add(i, job, op, per_s * (to - from))) return why;
  }
  return nullptr;
}

trace timeline::take(bool is_unix) {
  double const start = static_cast<double>(grid_.first()) * interval_s_;
  trace t = grid_.take(interval_s_);
  if (is_unix) t.start_unix_s = start;
  return t;
}

}  // namespace sluice::trace
