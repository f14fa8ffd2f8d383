// SPDX-License-Identifier: Apache-2.0
// Why a job gets what it gets, in sentences; and what a new policy would change.
#pragma once

#include <string>
#include <vector>

#include "node/state.h"

namespace sluice::node {

std::vector<std::string> explain_job(state const& s, job const& j);

std::vector<std::string> changes_of(site_state const& before, policy::site const& after,
                                    std::string const& text);

}  // namespace sluice::node
