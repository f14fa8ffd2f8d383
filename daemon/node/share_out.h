// SPDX-License-Identifier: Apache-2.0
// Divides this node's part of one supply among its jobs. Pure. Three rates per job, for the three
// phases of its curve: while the lease runs, after it, and once the node's escrow is its own again.
// What stays true: in each phase the sum over the jobs is at most what the node has in that phase,
// and no job gets more than its ceiling.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "node/rates.h"
#include "policies/allocate.h"

namespace sluice::node {

struct phases {
  rate now = 0, after = 0, own = 0;
  bool operator==(phases const&) const = default;
};

/// One job on the supply.
struct share_claim {
  policies::claim policy;  // what the QoS class says (after overrides) and what was measured
  rate granted = 0;        // by the parent, of what the node holds
  bool is_capped = false;  // a class limit spans nodes: never above `granted` while obeying
  // By the parent, in the place of the class's while its grant lasts: it knows what was set by
  // hand.
  std::optional<rate> told_limit = {};
  bool is_paused = false;  // gets nothing
  /// `granted` is of a limit or a pause that the parent told: nothing stays nothing.
  bool is_bound() const { return told_limit && *told_limit != policies::unbounded; }
};

struct share_supply {
  rate granted = 0;  // what the parent gave, while it lasts
  rate floor = 0;    // always the node's
  rate escrow = 0;   // the node's while lent to nobody
  rate trickle = 0;  // kept without a grant by a node that owns nothing
  rate whole = 0;    // capacity of the supply: what ceilings are scaled by when nobody coordinates
};

/// While a grant is in force: as the parent split it, then floor and remainder by weight. Not
/// `is_split`: the proportions of `before` are kept.
void share_grant(share_supply const& s, bool is_split, std::span<share_claim const> claims,
                 std::span<phases const> before, std::span<phases> out);

/// While the node decides alone over `usable`: what an algorithm is to be asked …
policies::supply lone_supply(share_supply const& s, rate usable,
                             std::span<share_claim const> claims);
/// … and what becomes of its answer.
void share_alone(share_supply const& s, rate usable, std::span<share_claim const> claims,
                 std::span<rate const> allocated, std::span<phases> out);

}  // namespace sluice::node
