// SPDX-License-Identifier: Apache-2.0
// The verbs that only a node has: join (a program is about to run), and those of batch schedulers:
// register and release (root: an announcement has come or gone), step and step-end (root: a process
// of the scheduler; everything below it is the job).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "node/state.h"

namespace sluice::node {

nlohmann::json join(state& s, local::peer const& who, nlohmann::json const& request);
/// The scheduler numbers again from the beginning, and what is left of a job may keep its number
/// for long: the one that is announced now is meant, and of a uid that is given only his.
job* scheduled_job(state const& s, std::string const& name,
                   std::optional<std::uint64_t> uid = std::nullopt);

nlohmann::json register_job(state& s, nlohmann::json const& request);
nlohmann::json release_job(state& s, nlohmann::json const& request);
nlohmann::json begin_step(state& s, local::peer const& who, nlohmann::json const& request);
nlohmann::json end_step(state& s, job const& j, nlohmann::json const& request);

}  // namespace sluice::node
