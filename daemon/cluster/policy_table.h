// SPDX-License-Identifier: Apache-2.0
// A policy as the controller computes with it: supplies and QoS classes as small dense rows of
// numbers. Names are kept for people only. What stays true: a supply keeps its index while anything
// is counted on it (`align`), because ledgers of grants in force are kept by index.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/unit_kind.h"
#include "lease/parent.h"
#include "policies/allocate.h"
#include "policy/site.h"
#include "policy/supply.h"

namespace sluice::cluster {

using lease::rate;
using lease::time_ns;
using policies::unbounded;

/// What a QoS class promises each of its jobs on one supply.
struct terms {
  std::uint32_t weight = 1000;  // thousandths
  std::uint32_t priority = 0;
  rate reservation = 0;
  rate limit = unbounded;
  bool follows = false;   // the reservation is what the requests need that it promises …
  rate most = unbounded;  // … up to this
};

struct supply_row {
  std::uint32_t key = 0;  // wire::supply_key
  std::string name;       // metadata@scratch
  std::string resource;
  core::unit_kind unit = core::unit_kind::ops;
  rate capacity = 0;            // 0: no longer in the policy; of a steered one the most
  rate lowest = 0;              // of a steered one
  rate promisable = unbounded;  // what reservations may come to
  rate floors = 0;              // what nodes use without any grant, all together
  std::optional<policy::auto_capacity> steered = {};    // nobody wrote how much there is
  std::optional<policy::measured_costs> measured = {};  // of VOPs
  lease::supply_terms lease;
};

struct class_row {
  std::uint32_t key = 0;  // wire::class_key; 0: jobs without a class
  std::string name;
  std::vector<terms> by_supply;
};

struct policy_table {
  std::vector<supply_row> supplies;
  std::vector<class_row> classes;   // [0] is for jobs without a class that anybody knows
  std::uint32_t default_class = 0;  // index into classes
  std::string algorithm = "maxmin";
  bool enforce = true;
  bool promises_requests = false;  // some class does
  lease::pool_owner owner = lease::pool_owner::single;
  std::int64_t cycle_ns = 100'000'000;
  std::int64_t lease_ns = 1'000'000'000;
  std::uint64_t hash = 0;
  std::string text;                // what nodes and relays are sent
  std::vector<std::string> nodes;  // who owns a part of each supply, sorted

  bool has_node(std::string const& name) const;
  /// Index of the class, or the default class.
  std::uint32_t class_of(std::uint32_t key) const;
  std::uint32_t class_named(std::string const& name) const;
  std::uint32_t supply_of(std::uint32_t key) const;  // `no_supply` when unknown
};

inline constexpr std::uint32_t no_supply = ~std::uint32_t{0};

policy_table policy_table_of(policy::site const& site, std::string const& text);

/// Gives the supplies of `next` the indices they have in `now`; those that are gone stay as rows
/// without capacity. One that is new takes the row of one that is gone, if it is in `unused`; the
/// result says which rows were taken.
std::vector<std::uint32_t> align(policy_table& next, policy_table const& now,
                                 std::span<std::uint32_t const> unused = {});

}  // namespace sluice::cluster
