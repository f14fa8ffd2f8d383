// SPDX-License-Identifier: Apache-2.0
// Actions of the screen on a job: it runs the command with a verb and shows the output, so that
// each verb has one place.
#pragma once

#include <string>
#include <vector>

#include "commands/cli/job_source.h"
#include "commands/cli/top/keys.h"

namespace sluice::cli {

/// The verb as a user would type it; empty for none. `is_own`: the job runs without a daemon.
std::vector<std::string> words_of(job_verb verb, std::string const& job, bool is_own);

/// Runs it. Its lines, standard error too, with nothing but printable characters; at
/// least one. It is ended after ten seconds.
std::vector<std::string> told_by(job_source const& source, job_verb verb, std::string const& job,
                                 bool is_own);

}  // namespace sluice::cli
