// SPDX-License-Identifier: Apache-2.0
// What a new policy would change, in sentences an operator can check before it is in force.
#pragma once

#include <string>
#include <vector>

#include "policy/policy.h"

namespace sluice::cluster {

std::vector<std::string> changes(policy::site const& from, policy::site const& to);

/// Of `changes`, those that wait for a restart of the controllers.
std::vector<std::string> needs_restart(policy::site const& from, policy::site const& to);

/// 20k/s, 1GiB/s; "none" when there is no such bound.
std::string text_of(std::uint64_t milli_per_second, bool counts_bytes);

}  // namespace sluice::cluster
