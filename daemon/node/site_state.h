// SPDX-License-Identifier: Apache-2.0
// The policy in force on this node, and the supplies it knows by number. A supply keeps its number
// also when a later policy no longer names it: leases and meters are kept by number. A new one
// takes the number of one that is gone and that nobody uses.
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

  /// Puts a policy in force. `is_used`: by supply, something is counted on it; those it is too
  /// short for are used. Throws what the parser throws; then nothing has changed.
  void apply(std::string const& text, std::string const& called,
             std::vector<bool> const& is_used = {});
  /// A number that is another supply's since the last apply(), and whose it was.
  struct renewal {
    unsigned supply;
    policy::supply was;
  };
  std::vector<renewal> const& renewed() const { return renewed_; }

  bool is_set() const { return hash_ != 0; }
  policy::site const& site() const { return site_; }
  std::string const& text() const { return text_; }
  std::uint64_t hash() const { return hash_; }
  std::vector<supply_slot> const& supplies() const { return supplies_; }
  /// Of the supplies that the policy names, by number; `no_key`: of one that it does not name.
  std::vector<std::uint32_t> keys() const;
  std::optional<unsigned> find_supply(std::uint32_t key) const;
  std::optional<unsigned> find_supply(std::string const& name) const;
  /// True when the policy lists nodes and this one is among them.
  bool is_listed() const;
  /// The class of this key; empty: none.
  std::string class_of(std::uint32_t key) const;

 private:
  void number_supplies(std::vector<bool> const& is_used);
  void fill(unsigned number, policy::supply of);

  std::string node_name_;
  std::string text_;
  std::uint64_t hash_ = 0;
  policy::site site_;
  std::vector<supply_slot> supplies_;
  std::vector<renewal> renewed_;
};

}  // namespace sluice::node
