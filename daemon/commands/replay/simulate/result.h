// SPDX-License-Identifier: Apache-2.0
// The result of a simulation, as a result file (see daemon/commands/report/README.md) and as a
// table.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "commands/replay/simulate/fluid.h"
#include "policy/site.h"

namespace sluice::simulation {

struct scene {
  trace::trace const& trace;
  policy::site const& site;
  cluster::policy_table const& plan;
  load const& jobs;
  std::string policy_file, trace_file, target;
  double took_s = 0;
};

nlohmann::json result_of(scene const& s, past const& p);

std::string table_of(scene const& s, past const& p);

}  // namespace sluice::simulation
