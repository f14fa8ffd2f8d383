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

/// The same of what was read from these texts. Where nothing can be told of texts that differ, it
/// says so.
std::vector<std::string> changes(site const& from, std::string const& from_text, site const& to,
                                 std::string const& to_text);

/// Of `changes`, those that wait for a restart of the controllers.
std::vector<std::string> needs_restart(site const& from, site const& to);

/// What there is of a supply: a rate, or how it is steered.
std::string capacity_in_words(supply const& s);

/// The names of the calls in a mask.
std::string ops_in_words(std::uint64_t ops);

/// `channel scan: stat, open at most 50/s, on scratch`.
std::string channel_in_words(channel_spec const& c);

}  // namespace sluice::policy
