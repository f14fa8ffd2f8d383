// SPDX-License-Identifier: Apache-2.0
// What the time of calls tells of a supply, as people and programs read it: a steered capacity, and
// costs that no longer fit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "policy/supply.h"
#include "verbs/views/views.h"

namespace sluice::verbs {

/// `sign`: what it does, by policies/steer.h.
steered_view steered_by(policy::auto_capacity const& how, rate least, rate most, rate found,
                        std::string_view sign, std::uint32_t slow_ppm);

/// `Nobody wrote its capacity: it is 214/s now, between 50/s and 20k/s. It falls: 31 % of the
/// calls took longer than 5ms, and 10 % may.`
std::string steered_in_words(steered_view const& v, core::unit_kind unit);

nlohmann::json steered_row(steered_view const& v);

/// Empty: the costs fit, or nobody knows.
std::string drift_in_words(drift_view const& v);

nlohmann::json drift_row(drift_view const& v);

}  // namespace sluice::verbs
