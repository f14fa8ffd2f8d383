// SPDX-License-Identifier: Apache-2.0
#include "commands/report/shape.h"

#include <algorithm>
#include <cmath>

namespace sluice::report {

bool is_amount(std::string_view what) {
  static constexpr std::string_view amounts[] = {"offered", "submitted", "done",  "failed",
                                                 "delayed", "waited",    "took",  "blocked",
                                                 "paused",  "unused",    "beyond"};
  return std::find(std::begin(amounts), std::end(amounts), what) != std::end(amounts);
}

double sum_of(std::vector<double> const& values) {
  double sum = 0;
  for (double v : values)
    if (!std::isnan(v)) sum += v;
  return sum;
}

double most_of(std::vector<double> const& values) {
  double most = 0;
  for (double v : values)
    if (v > most) most = v;
  return most;
}

std::vector<double> rates_of(series const& row, timeline const& time) {
  std::vector<double> out = row.values;
  out.resize(time.intervals, unknown);
  if (is_amount(row.what))
    for (double& v : out) v /= time.interval_s;
  return out;
}

void add_to(std::vector<double>& sums, std::vector<double> const& more) {
  if (sums.size() < more.size()) sums.resize(more.size(), unknown);
  for (std::size_t i = 0; i < more.size(); ++i)
    if (!std::isnan(more[i])) sums[i] = std::isnan(sums[i]) ? more[i] : sums[i] + more[i];
}

std::size_t merged(std::size_t intervals, std::size_t columns) {
  return std::max<std::size_t>(1, (intervals + columns - 1) / columns);
}

std::vector<double> columns_of(std::vector<double> const& values, std::size_t merged) {
  std::vector<double> out;
  for (std::size_t i = 0; i < values.size(); i += merged) {
    double sum = 0;
    std::size_t known = 0;
    for (std::size_t j = i; j < std::min(values.size(), i + merged); ++j)
      if (!std::isnan(values[j])) sum += values[j], ++known;
    out.push_back(known == 0 ? unknown : sum / static_cast<double>(known));
  }
  return out;
}

span_of_time densest(std::vector<double> const& values, double share) {
  double const wanted = sum_of(values) * share;
  span_of_time best = {0, values.size()};
  if (!(wanted > 0)) return {};
  double within = 0;
  std::size_t begin = 0;
  auto const at = [&](std::size_t i) { return std::isnan(values[i]) ? 0 : values[i]; };
  for (std::size_t end = 0; end < values.size(); ++end) {
    within += at(end);
    while (begin < end && within - at(begin) >= wanted) within -= at(begin++);
    if (within >= wanted && end + 1 - begin < best.end - best.begin) best = {begin, end + 1};
  }
  return best;
}

}  // namespace sluice::report
