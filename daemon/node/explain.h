// SPDX-License-Identifier: Apache-2.0
// Why a job gets what it gets, in sentences.
#pragma once

#include <string>
#include <vector>

#include "node/state.h"

namespace sluice::node {

std::vector<std::string> explain_job(state const& s, job const& j);

}  // namespace sluice::node
