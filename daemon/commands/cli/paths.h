// SPDX-License-Identifier: Apache-2.0
// `sluice run --paths`: the options, and the content of the job's area of paths at the end.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "commands/cli/options.h"

namespace sluice::cli {

struct path_wish {
  unsigned rows = 0;   // to be shown
  unsigned parts = 0;  // of a directory's name that count; 0: nothing is noted
};

/// Throws a usage error.
path_wish paths_wanted(run_options const& options);

/// Puts "paths", the busiest first, and "paths_other_calls" into a report; a line of warning
/// instead when there is no area, or it is damaged.
void put_paths(nlohmann::ordered_json& report, std::string const& segment_path, unsigned rows);

/// The first few of them as lines; empty without any.
std::string paths_table(nlohmann::ordered_json const& report);

}  // namespace sluice::cli
