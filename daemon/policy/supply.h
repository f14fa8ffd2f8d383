// SPDX-License-Identifier: Apache-2.0
// A policy in the numbers of the control plane: supplies (a resource of a target that has a
// capacity), the share of a class in one, rates in milli-tokens per second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ruleset.h"
#include "policy/auto_capacity.h"
#include "policy/limit.h"

namespace sluice::policy {

struct site;
struct share;

/// What a calibration found of a target, for whoever looks whether it is still so.
struct measured_costs {
  std::uint64_t floor = 0, most = 0;  // VOP/s, in thousandths
  unsigned threads = 0;               // that filled the device
};

struct supply {
  std::string target;
  std::string resource;
  std::uint64_t capacity = 0;    // milli-tokens per second; of a steered one the most
  std::uint64_t least = 0;       // of it, what is there in any case: all, unless it is steered
  std::uint64_t lowest = 0;      // below which a steered one does not fall, were it in force or not
  std::uint64_t promisable = 0;  // of it, what reservations may come to
  core::unit_kind unit = core::unit_kind::ops;
  std::optional<auto_capacity> steered = {};    // nobody wrote how much there is
  std::optional<measured_costs> measured = {};  // of VOPs, unless the costs were written by hand
  std::string name() const { return resource + "@" + target; }
};

/// Sorted by target, then resource.
std::vector<supply> supplies(site const& s);

/// Nothing: the class says nothing of this supply (weight 1, no reservation, no limit).
std::optional<share> share_of(site const& s, std::string const& qos_class, supply const& of);

/// What each node named in control.nodes owns of what is there in any case, rounded down; 0 without
/// names. The pool is the capacity less this of all nodes.
struct own_part {
  std::uint64_t escrow = 0;
  std::uint64_t floor = 0;
};
own_part own_part_of(site const& s, supply const& of);

/// FNV-1a; never 0, which means none.
std::uint64_t policy_hash(std::string_view text);

/// Refuses reservations that together exceed their capacity, with the sum written out.
void check_reservations(site const& s);

}  // namespace sluice::policy
