// SPDX-License-Identifier: Apache-2.0
// Jobs, streams and supplies of a node as rows for people: rates in tokens per second.
#pragma once

#include <nlohmann/json.hpp>

#include "local/local.h"
#include "node/state.h"

namespace sluice::node {

using nlohmann::json;

inline double tokens(rate r) { return static_cast<double>(r) / 1000; }

json stream_rows(state const& s, job const& j);
json job_row(state const& s, job const& j);
/// Those that `who` may see.
json job_rows(state const& s, local::peer const& who);
json supply_rows(state const& s);
json node_row(state const& s);

}  // namespace sluice::node
