// SPDX-License-Identifier: Apache-2.0
// The counters of a scheduler's job on this node: a sentence for the job's output, and the result
// file RUN/results/JOB.json that only its user (and root) can read.
#pragma once

#include <string>

#include "node/state.h"

namespace sluice::node {

/// `job 4711 in class silver: 12034 calls, 1.2 GiB, waited 3.2 s: open 2.1 s, stat 1 s`
std::string outcome_line(state const& s, job const& j);

/// Writes the result file. A disk that is full keeps no job from ending: the log says it.
void keep_result(state const& s, job const& j);

}  // namespace sluice::node
