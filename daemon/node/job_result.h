// SPDX-License-Identifier: Apache-2.0
// The counters of a scheduler's job on this node: a sentence for the job's output, and the result
// file RUN/results/JOB.json that only its user (and root) can read.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
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

/// Whole seconds since the job came, never less than none. Whoever sets the clock of people does
/// not change them. `boot`: boot_id(). After a start of the machine the time of day is all there
/// is.
std::int64_t elapsed_s(scheduler_terms const& terms, dated_moment now, std::string const& boot);

/// What its result file says: all that it counted is read.
std::string result_text(job const& j, result_terms const& terms, std::string const& run_dir);

/// Writes the result file, and takes away those that have no room beside it. A disk that is full
/// keeps no job from ending: the log says it.
void keep_result(job const& j, std::string const& text, std::string const& run_dir,
                 owner_lookup const& owner_of, runtime::logger& log);

}  // namespace sluice::node
