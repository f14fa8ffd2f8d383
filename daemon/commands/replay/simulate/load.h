// SPDX-License-Identifier: Apache-2.0
// A trace as the simulation sees it: per job and supply, the demand in each interval. Operations
// that no supply of the policy counts are never held back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/policy_table.h"
#include "commands/trace/trace.h"

namespace sluice::simulation {

inline constexpr std::uint32_t no_supply = ~std::uint32_t{0};

/// One operation of one job.
struct op_column {
  std::uint32_t column;  // of the trace
  std::uint32_t supply;  // no_supply: nobody counts it
};

struct job_load {
  std::string name;
  std::string qos_class;  // empty: none
  std::uint32_t row = 0;  // of plan::classes
  std::size_t first = 0;  // interval with the first operation
  std::size_t end = 0;    // after the last
  std::vector<op_column> ops;
  std::vector<std::vector<double>> offered;  // [supply][interval], empty: never used
};

struct load {
  double interval_s = 0;
  std::size_t intervals = 0;
  std::vector<job_load> jobs;
  std::string idle_class;  // wanted for all other jobs, and there are none; empty: none is
};

/// Supplies of other targets than the one of that name are left alone. `classes`: see options.
/// Throws a usage error: a job or class that is not there, a trace that offers nothing.
load make_load(trace::trace const& t, cluster::policy_table const& p, std::string const& target,
               std::vector<std::string> const& classes);

}  // namespace sluice::simulation
