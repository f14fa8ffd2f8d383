// SPDX-License-Identifier: Apache-2.0
// The result of a replay, as a result file (see daemon/commands/report/README.md) and as a table.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "commands/replay/harvest.h"
#include "commands/replay/options.h"
#include "commands/replay/plan.h"

namespace sluice::replay {

struct replay_result {
  options const& asked;
  plan const& made;
  timeline const& times;
  shared_counters& book;
  std::vector<std::pair<std::string, std::string>> facts;  // of the trace
  double start_unix_s = 0;
  double elapsed_s = 0;     // from the start to the end of the last operation, or to the stop
  bool is_stopped = false;  // before all was sent
};

/// Operations that were meant for each interval of the timeline, in units of the stream; none after
/// the stop.
std::vector<double> offered(replay_result const& o, unsigned stream);

nlohmann::json result_json(replay_result const& o);
std::string result_table(replay_result const& o);

}  // namespace sluice::replay
