// SPDX-License-Identifier: Apache-2.0
// The changes that a new policy makes, in sentences that an operator can check before it is in
// force.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/limit.h"
#include "policy/site.h"

namespace sluice::policy {

struct supply;

std::vector<std::string> changes(site const& from, site const& to);

/// Of `changes`, those that wait for a restart of the controllers.
std::vector<std::string> needs_restart(site const& from, site const& to);

/// What there is of a supply: a rate, or how it is steered.
std::string capacity_in_words(supply const& s);

}  // namespace sluice::policy
