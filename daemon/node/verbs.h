// SPDX-License-Identifier: Apache-2.0
// What the local socket of a node is asked, one function per verb. Who may do what is decided here
// and in job_table: a user sees and changes his own jobs, an operator all.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "local/local.h"
#include "node/state.h"

namespace sluice::node {

nlohmann::json answer(state& s, local::peer const& who, nlohmann::json const& request);

}  // namespace sluice::node
