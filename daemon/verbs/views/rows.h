// SPDX-License-Identifier: Apache-2.0
// Views as JSON, as `sluice jobs --json` and `sluice top` read them. Rates are tokens per second.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "verbs/views/overrides.h"
#include "verbs/views/views.h"

namespace sluice::verbs {

nlohmann::json stream_rows(job_view const& job);
/// `user`: its name. `changed` null: nobody has changed anything.
nlohmann::json job_row(job_view const& job, std::string const& user, job_overrides const* changed);
nlohmann::json supply_row(supply_view const& supply);
nlohmann::json node_row(node_view const& node);

/// Seconds since 1970 as a promise to people: null is until it is changed.
nlohmann::json until_json(double until_s);

}  // namespace sluice::verbs
