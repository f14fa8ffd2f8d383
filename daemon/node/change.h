// SPDX-License-Identifier: Apache-2.0
// set, pause, resume: people change a running job on this node, for a time if they say so.
#pragma once

#include <nlohmann/json.hpp>

#include "local/local.h"
#include "node/state.h"

namespace sluice::node {

nlohmann::json set_job(state& s, local::peer const& who, nlohmann::json const& request);
nlohmann::json pause_job(state& s, local::peer const& who, nlohmann::json const& request);
nlohmann::json resume_job(state& s, local::peer const& who, nlohmann::json const& request);

}  // namespace sluice::node
