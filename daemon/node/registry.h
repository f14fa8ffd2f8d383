// SPDX-License-Identifier: Apache-2.0
// The verbs of the local socket for batch schedulers: register and release (root: an announcement
// has come or gone), step and step-end (root: a process of the scheduler, all below which is the
// job), classes (anybody: may I use this one?).
#pragma once

#include <nlohmann/json.hpp>

#include "node/state.h"

namespace sluice::node {

nlohmann::json register_job(state& s, local::peer const& who, nlohmann::json const& request);
nlohmann::json release_job(state& s, local::peer const& who, nlohmann::json const& request);
nlohmann::json begin_step(state& s, local::peer const& who, nlohmann::json const& request);
nlohmann::json end_step(state& s, local::peer const& who, nlohmann::json const& request);
nlohmann::json classes(state& s, local::peer const& who, nlohmann::json const& request);

}  // namespace sluice::node
