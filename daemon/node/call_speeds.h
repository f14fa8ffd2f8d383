// SPDX-License-Identifier: Apache-2.0
// How fast the calls of a job are, from its shared memory: for supplies whose capacity is steered
// (policies/steer.h), and for VOPs that were measured (policies/drift.h). Reading is a border, like
// demand_meter.h.
// What stays true: only what grew since the last look counts, and never more calls than a node can
// make; memory that went back or jumped counts nothing.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "abi/segment.h"
#include "base/foreign.h"
#include "policies/steer.h"
#include "policy/site.h"
#include "policy/supply.h"

namespace sluice::node {

/// What was seen of a job at the last look. Begins anew with a new policy.
struct told_speeds {
  bool has_begun = false;           // the first look only begins to count
  std::vector<std::string> target;  // names in the policy, by number in the job
  std::map<std::array<unsigned, 3>, policies::call_speeds> of;  // by supply, target and op
};

/// Adds what the calls of a job did since the last look to `speeds[i]` of `supplies[i]`.
void look_at_speeds(foreign<abi::segment> const& s, policy::site const& site,
                    std::span<policy::supply const* const> supplies, told_speeds& told,
                    std::span<policies::call_speeds> speeds);

/// Those of a histogram that took longer than `wanted_ns`; within a step by its part.
std::uint64_t slower_than(core::histogram_counts const& h, std::uint64_t wanted_ns);

}  // namespace sluice::node
