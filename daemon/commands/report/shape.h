// SPDX-License-Identifier: Apache-2.0
// Series as something to add up and to draw: amounts become rates, intervals become a bounded
// number of columns, rows of one kind are summed. Pure; NaN is "not known" throughout.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "commands/report/result.h"

namespace sluice::report {

/// True when the values are amounts of an interval, so that merging intervals adds them.
bool is_amount(std::string_view what);

/// The sum of the known values.
double sum_of(std::vector<double> const& values);
double most_of(std::vector<double> const& values);

/// A row per interval, as a rate per second if it is an amount.
std::vector<double> rates_of(series const& row, timeline const& time);

/// Adds what is known; a sum of nothing known stays unknown.
void add_to(std::vector<double>& sums, std::vector<double> const& more);

/// At most `columns` values: neighbours averaged, unknown ones left out. The columns are of equal
/// width: each stands for `merged(…)` intervals.
std::vector<double> columns_of(std::vector<double> const& values, std::size_t merged);
std::size_t merged(std::size_t intervals, std::size_t columns);

/// Where most of it lies: the shortest span of neighbours that holds `share` of the sum.
struct span_of_time {
  std::size_t begin = 0, end = 0;  // intervals, end not included
};
span_of_time densest(std::vector<double> const& values, double share);

}  // namespace sluice::report
