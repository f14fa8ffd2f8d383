// SPDX-License-Identifier: Apache-2.0
// What the local socket shows of a controller: jobs, children, supplies. Rates are tokens per
// second. Rows are made one at a time and only for the page that is asked for, because there may be
// ten thousand of each.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cluster/brain.h"
#include "local/local.h"

namespace sluice::cluster {

/// Operators see all jobs, others their own.
bool is_operator(local::peer const& who);
bool may_see(local::peer const& who, job const& j);

nlohmann::json stream_rows(brain const& b, std::uint32_t job);
/// `total`: its processes on all children.
nlohmann::json job_row(brain const& b, std::uint32_t job, tenancy const& total);
nlohmann::json child_row(brain const& b, std::uint32_t child, time_ns now);
nlohmann::json supply_rows(brain const& b, time_ns now);

char const* state_of(child const& c, time_ns now);  // live, silent, gone
std::string name_of(job const& j);  // for messages; a job nobody named yet has its key

/// Rows of jobs that may be seen, then, if asked for, of children, as many as fit a packet, from
/// request "from" on; answer["next"] says where to go on.
void put_rows(nlohmann::json& answer, nlohmann::json const& request, brain const& b,
              local::peer const& who, bool with_children, time_ns now);

}  // namespace sluice::cluster
