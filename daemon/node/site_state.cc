// SPDX-License-Identifier: Apache-2.0
#include "node/site_state.h"

#include <algorithm>

#include "policy/policy.h"
#include "runtime/lease_file.h"

namespace sluice::node {

void site_state::apply(std::string const& text, std::string const& called,
                       std::vector<bool> const& is_used) {
  policy::site fresh = policy::parse_policy(text, called);
  site_ = std::move(fresh);
  text_ = text;
  hash_ = policy::policy_hash(text);
  number_supplies(is_used);
}

bool site_state::is_listed() const {
  auto const& nodes = site_.control.nodes;
  return std::find(nodes.begin(), nodes.end(), node_name_) != nodes.end();
}

void site_state::number_supplies(std::vector<bool> const& is_used) {
  for (auto& slot : supplies_) {
    slot.of.capacity = 0;
    slot.floor = slot.escrow = slot.trickle = 0;
  }
  renewed_.clear();
  std::vector<policy::supply> fresh;
  for (auto& of : policy::supplies(site_)) {  // what comes back finds its own number
    if (auto const at = find_supply(wire::supply_key(of.resource, of.target)))
      fill(*at, std::move(of));
    else
      fresh.push_back(std::move(of));
  }
  unsigned next = 0;
  for (auto& of : fresh) {
    while (next < supplies_.size() &&
           (supplies_[next].is_shared() || next >= is_used.size() || is_used[next]))
      ++next;
    if (next == supplies_.size())
      supplies_.emplace_back();
    else
      renewed_.push_back({next, std::move(supplies_[next].of)});
    fill(next++, std::move(of));
  }
}

void site_state::fill(unsigned number, policy::supply of) {
  auto const part = is_listed() ? policy::own_part_of(site_, of) : policy::own_part{};
  rate const trickle = part.escrow + part.floor == 0 ? of.least / 1000 : 0;
  std::uint32_t const key = wire::supply_key(of.resource, of.target);
  supplies_[number] = {std::move(of), key, part.floor, part.escrow, trickle};
}

std::vector<std::uint32_t> site_state::keys() const {
  std::vector<std::uint32_t> out;
  for (supply_slot const& slot : supplies_)
    out.push_back(slot.is_shared() ? slot.key : runtime::no_key);
  return out;
}

std::optional<unsigned> site_state::find_supply(std::uint32_t key) const {
  for (unsigned i = 0; i < supplies_.size(); ++i)
    if (supplies_[i].key == key) return i;
  return std::nullopt;
}

std::optional<unsigned> site_state::find_supply(std::string const& name) const {
  for (unsigned i = 0; i < supplies_.size(); ++i)
    if (supplies_[i].of.name() == name) return i;
  return std::nullopt;
}

std::string site_state::class_of(std::uint32_t key) const {
  for (auto const& c : site_.classes)
    if (wire::class_key(c.name) == key) return c.name;
  return {};
}

}  // namespace sluice::node
