// SPDX-License-Identifier: Apache-2.0
// The policy in force on this node, and the supplies it knows by number. A supply keeps its number
// as long as the daemon runs, also when a later policy no longer names it: leases and meters are
// kept by number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/rates.h"
#include "policy/site.h"
#include "policy/supply.h"
#include "wire/message.h"

namespace sluice::node {

struct supply_slot {
  policy::supply of;      // capacity 0: the policy no longer names it
  std::uint32_t key = 0;  // wire::supply_key
  rate floor = 0;         // always this node's
  rate escrow = 0;        // this node's while lent to nobody
  rate trickle = 0;       // what an orphan without floor and escrow keeps, beside the sum
  bool is_shared() const { return of.capacity != 0; }  // else nobody is limited on it
};

class site_state {
 public:
  explicit site_state(std::string node_name) : node_name_(std::move(node_name)) {}

  /// Puts a policy in force. Throws what the parser throws; then nothing has changed.
  void apply(std::string const& text, std::string const& called);

  bool is_set() const { return hash_ != 0; }
  policy::site const& site() const { return site_; }
  std::string const& text() const { return text_; }
  std::uint64_t hash() const { return hash_; }
  std::vector<supply_slot> const& supplies() const { return supplies_; }
  std::vector<std::uint32_t> keys() const;  // of all supplies, by number
  std::optional<unsigned> find_supply(std::uint32_t key) const;
  std::optional<unsigned> find_supply(std::string const& name) const;
  /// True when the policy lists nodes and this one is among them.
  bool is_listed() const;
  /// The class of this key; empty: none.
  std::string class_of(std::uint32_t key) const;

 private:
  void number_supplies();

  std::string node_name_;
  std::string text_;
  std::uint64_t hash_ = 0;
  policy::site site_;
  std::vector<supply_slot> supplies_;
};

}  // namespace sluice::node
