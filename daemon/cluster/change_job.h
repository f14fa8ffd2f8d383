// SPDX-License-Identifier: Apache-2.0
// set, pause and resume: what a person changes of a running job.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cluster/controller.h"
#include "local/local.h"

namespace sluice::cluster {

/// NAME, UID@NAME or USER@NAME among the jobs that `who` may see. Throws a usage error when there
/// is none, or more than one.
std::uint32_t find_job(brain const& b, local::peer const& who, std::string const& name);

nlohmann::json set_job(controller& c, local::peer const& who, nlohmann::json const& request);
nlohmann::json pause_job(controller& c, local::peer const& who, nlohmann::json const& request);
nlohmann::json resume_job(controller& c, local::peer const& who, nlohmann::json const& request);

}  // namespace sluice::cluster
