// SPDX-License-Identifier: Apache-2.0
// Why a job gets what it gets, and what of a policy deserves a second look, in sentences.
#pragma once

#include <string>
#include <vector>

#include "cluster/brain.h"

namespace sluice::cluster {

std::vector<std::string> explain_job(brain const& b, std::uint32_t job);

/// Of a new policy, with the jobs that run now: reservations that will not fit, jobs whose class is
/// gone.
std::vector<std::string> warnings_of(brain const& b, policy::site const& site);

}  // namespace sluice::cluster
