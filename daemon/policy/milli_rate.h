// SPDX-License-Identifier: Apache-2.0
// Rates that are shared out are kept in thousandths per second. What is less than one of them would
// be none, and hold everything back.
#pragma once

#include <string>
#include <string_view>

#include "policy/limit.h"

namespace sluice::policy {

/// parse_amount() of what is kept so. Throws also for less than a thousandth; 0 is 0.
rate parse_milli_rate(std::string_view text, std::string const& where, core::unit_kind unit,
                      std::string_view what);

/// What is wrong with so little, in words that follow the amount.
std::string too_little(core::unit_kind unit);

}  // namespace sluice::policy
