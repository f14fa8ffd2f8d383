// SPDX-License-Identifier: Apache-2.0
// One algorithm on one recorded demand, in virtual time.
#pragma once

#include <string_view>
#include <vector>

#include "demand.h"

namespace sluice::sim {

/// Shares of the ideal sum unless said otherwise. The ideal knows all demand without delay and
/// serves it by weighted max-min at every step.
struct outcome {
  double served = 0;               // of capacity times time
  double shortfall = 0;            // what jobs got less than the ideal
  double wasted = 0;               // of it: nobody got it
  double unfair = 0;               // of it: another job got it
  std::vector<double> rise_s;      // idle to 95 % of the ideal, of each job's returns from idle
  unsigned rises = 0;              // with those that ended before they got there
  std::vector<double> first_rise;  // served / ideal of 50 ms each, from the first return on
};

enum class node_split { by_demand, equal };

/// `name` of an algorithm, or `ideal`.
outcome run_demand(demand_series const& series, std::string_view name, node_split how);

/// Four jobs that need two supplies in fixed ratios: progress of each, part used of both.
struct pair_outcome {
  std::vector<double> progress;
  double used[2] = {};
};
pair_outcome run_pairs(std::string_view name);

}  // namespace sluice::sim
