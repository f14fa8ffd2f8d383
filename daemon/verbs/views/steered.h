// SPDX-License-Identifier: Apache-2.0
// A steered capacity as people and programs read it.
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

}  // namespace sluice::verbs
