// SPDX-License-Identifier: Apache-2.0
// The verbs that change a running job: set, pause, resume.
#pragma once

#include "verbs/role.h"

namespace sluice::verbs {

/// Throw sluice::error.
nlohmann::json set_job(role& r, local::peer const& who, nlohmann::json const& request);
nlohmann::json pause_job(role& r, local::peer const& who, nlohmann::json const& request);
nlohmann::json resume_job(role& r, local::peer const& who, nlohmann::json const& request);

}  // namespace sluice::verbs
