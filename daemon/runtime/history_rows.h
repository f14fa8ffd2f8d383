// SPDX-License-Identifier: Apache-2.0
// The history as JSON: for the verb `history` of the local socket, and for the dashboard.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/history.h"
#include "runtime/op_history.h"

namespace sluice::runtime {

/// The names, figures and points of a row for a picture: finished intervals, amounts per second,
/// numbers of four digits.
nlohmann::json history_json(history_row const& row);

/// The same of an op of a job.
nlohmann::json op_json(op_row const& row);

/// Answers {"verb": "history", "job": NAME (all without), "interval": 1 or 10, "from": N}: answer
/// "interval_s", "rows", "left_out", and "next": the `from` of the next page, or null. The rows
/// have amounts ("served_sum", "delayed_sum", "waited_s", "blocked_s", of jobs "paused_s"); the
/// last interval goes on, and "end_unix_s" is its end. A job is named as NAME, USER@NAME or
/// UID@NAME. `past` null: nothing is kept here, which is an error.
nlohmann::json answer_history(history const* past, history_reader const& who,
                              nlohmann::json const& request);

/// The same with "ops": true: rows of jobs by op, with "done_sum".
nlohmann::json answer_op_history(op_history const* past, history_reader const& who,
                                 nlohmann::json const& request);

}  // namespace sluice::runtime
