// SPDX-License-Identifier: Apache-2.0
// The history of a daemon as a result. Asked over the local socket, where the kernel says who asks:
// a user gets his own jobs, an operator all.
#pragma once

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "commands/report/result.h"

namespace sluice::report {

struct question {
  std::string run_dir;  // empty: where a daemon is found
  std::string job;      // empty: all that may be seen
  double last_s = 3600;
  uid_t uid = uid_t(-1);  // who asks: a plain name means his job, if he has one of it
};

/// Of a job that the daemon no longer remembers: what it wrote down at its end. Throws when no
/// daemon answers, or it knows no such job.
result ask_history(question const& q);

/// The address of the daemon's page with the key of who asks: a secret.
std::string ask_dashboard(std::string const& run_dir);

/// Answers to the verb `history`, all their pages, as a result file; the second to "ops": true, or
/// an empty object. They come from another program: what is missing or of another type counts as
/// not said. Where several users have jobs of one name, these are USER@JOB. Throws a usage error
/// when the job that was asked for is more than one.
nlohmann::json result_of_history(nlohmann::json const& answer, nlohmann::json const& op_answer,
                                 question const& q);

}  // namespace sluice::report
