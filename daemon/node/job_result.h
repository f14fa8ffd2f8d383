// SPDX-License-Identifier: Apache-2.0
// The counters of a scheduler's job on this node: a sentence for the job's output, and the result
// file RUN/results/JOB.json that only its user (and root) can read.
#pragma once

#include <string>

#include "base/owners.h"
#include "node/job.h"
#include "runtime/log.h"

namespace sluice::node {

/// What a result says beside what the job's memory has.
struct result_terms {
  std::string qos_class;  // in force; empty: none
  std::string node;       // the name of this node
};

/// `job 4711 in class silver: 12034 calls, 1.2 GiB, waited 3.2 s: open 2.1 s, stat 1 s`
std::string outcome_line(job const& j, result_terms const& terms);

/// Writes the result file, and takes away those that have no room beside it. A disk that is full
/// keeps no job from ending: the log says it.
void keep_result(job const& j, result_terms const& terms, std::string const& run_dir,
                 owner_lookup const& owner_of, runtime::logger& log);

}  // namespace sluice::node
