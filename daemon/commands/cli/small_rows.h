// SPDX-License-Identifier: Apache-2.0
// Small I/O for people: what a job has of it, and what came of that. A report has it, and "small"
// of a job that runs. A daemon may have told it, so nothing is taken for granted.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "commands/cli/job.h"

namespace sluice::cli {

/// "small" of the job, where it has some.
void put_small(nlohmann::ordered_json& row, foreign<abi::segment> const& s,
               std::string const& segment_path, std::int64_t owner);
void put_small(nlohmann::ordered_json& row, open_job const& job);

/// Which targets have what, and what came of it; some lines, each ended, or none.
std::string small_lines(nlohmann::ordered_json const& row);
/// The same without the targets: of "hints", "gathered" and "buffered" of a report.
std::string counted_small_lines(nlohmann::ordered_json const& report);
/// For the end of a line: `  small I/O: strict in /scratch, 4000 small calls became 12`.
std::string small_words(nlohmann::ordered_json const& row);

}  // namespace sluice::cli
