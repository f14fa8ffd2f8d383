// SPDX-License-Identifier: Apache-2.0
// The output of `sluice order`, as JSON and as lines for people. A file that a job wrote to durable
// targets has one of these states: open (written, not synced), closed (an fsync waits for it),
// durable (in the journal). Of one that is safe itself nothing is said.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "segment/order_look.h"

namespace sluice::cli {

using order_row = nlohmann::ordered_json;

std::string user_name(uid_t uid);

order_row order_job_row(std::string const& job, segment::order_job const& look);

/// Its files, those with most noted first; names are those under which the job has them open.
order_row order_file_rows(std::string const& segment_path, segment::order_job const& look);

/// A picture {"journals": […], "jobs": […]} as lines; with `in_full` all that is known of each job.
std::string order_table(order_row const& picture, bool in_full);

}  // namespace sluice::cli
