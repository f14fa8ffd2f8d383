// SPDX-License-Identifier: Apache-2.0
#include "cluster/policy_table.h"

#include <algorithm>
#include <cmath>

#include "policy/supply.h"
#include "wire/message.h"

namespace sluice::cluster {

namespace {

lease::pool_owner owner_of(policy::pool_owner o) {
  switch (o) {
    case policy::pool_owner::majority:
      return lease::pool_owner::majority;
    case policy::pool_owner::none:
      return lease::pool_owner::none;
    case policy::pool_owner::single:
      break;
  }
  return lease::pool_owner::single;
}

terms terms_of(policy::share const& share) {
  terms t;
  t.weight = static_cast<std::uint32_t>(std::lround(share.weight * 1000));
  t.priority = share.priority;
  if (share.reservation) t.reservation = policy::milli_per_second(*share.reservation);
  if (share.limit) t.limit = policy::milli_per_second(*share.limit);
  t.follows = share.requests.has_value();
  if (!t.follows) return t;
  if (share.requests->has_most) t.most = t.reservation;
  t.reservation = policy::milli_per_second(policy::first_of(*share.requests));
  return t;
}

supply_row row_of(policy::site const& site, policy::supply const& s) {
  supply_row row;
  row.key = wire::supply_key(s.resource, s.target);
  row.name = s.name();
  row.resource = s.resource;
  row.unit = s.unit;
  row.capacity = s.capacity;
  // What no node owns is the pool: the parts are rounded down, so the sum is the capacity exactly.
  policy::own_part const own = policy::own_part_of(site, s);
  rate const nodes = site.control.nodes.size();
  row.lowest = s.lowest;
  row.promisable = s.promisable;
  row.floors = nodes * own.floor;
  row.steered = s.steered;
  row.measured = s.measured;
  row.lease.pool = s.capacity - nodes * (own.escrow + own.floor);
  row.lease.configured = static_cast<std::uint32_t>(nodes);
  row.lease.most_lent = nodes * own.escrow;
  return row;
}

}  // namespace

bool policy_table::has_node(std::string const& name) const {
  return std::ranges::binary_search(nodes, name);
}

std::uint32_t policy_table::class_of(std::uint32_t key) const {
  for (std::uint32_t i = 1; i < classes.size(); ++i)
    if (classes[i].key == key) return i;
  return default_class;
}

std::uint32_t policy_table::class_named(std::string const& name) const {
  for (std::uint32_t i = 1; i < classes.size(); ++i)
    if (classes[i].name == name) return i;
  return default_class;
}

std::uint32_t policy_table::supply_of(std::uint32_t key) const {
  for (std::uint32_t i = 0; i < supplies.size(); ++i)
    if (supplies[i].key == key) return i;
  return no_supply;
}

policy_table policy_table_of(policy::site const& site, std::string const& text) {
  policy_table p;
  p.text = text;
  p.hash = policy::policy_hash(text);
  p.algorithm = site.algorithm;
  p.enforce = site.control.enforce;
  p.owner = owner_of(site.control.pool);
  p.cycle_ns = site.control.cycle_ns;
  p.lease_ns = site.control.lease_ns;
  p.nodes = site.control.nodes;
  std::ranges::sort(p.nodes);
  std::vector<policy::supply> const supplies = policy::supplies(site);
  for (auto const& s : supplies) p.supplies.push_back(row_of(site, s));
  p.classes.push_back({0, "", std::vector<terms>(supplies.size())});
  for (auto const& c : site.classes) {
    class_row row{wire::class_key(c.name), c.name, {}};
    for (auto const& s : supplies) {
      auto const share = policy::share_of(site, c.name, s);
      row.by_supply.push_back(share ? terms_of(*share) : terms{});
      p.promises_requests = p.promises_requests || row.by_supply.back().follows;
    }
    if (c.name == site.control.default_class)
      p.default_class = static_cast<std::uint32_t>(p.classes.size());
    p.classes.push_back(row);
  }
  return p;
}

std::vector<std::uint32_t> align(policy_table& next, policy_table const& now,
                                 std::span<std::uint32_t const> unused) {
  std::vector<supply_row> rows = now.supplies;
  std::vector<std::uint32_t> from(rows.size(), no_supply);  // place in `next` of each row
  for (supply_row& r : rows) r.capacity = 0, r.lease = {}, r.steered.reset(), r.measured.reset();
  for (supply_row const& s : next.supplies)  // what comes back finds its own row
    if (std::uint32_t const at = now.supply_of(s.key); at != no_supply) from[at] = 0;
  std::vector<std::uint32_t> taken;
  auto const is_free = [&](std::uint32_t row) { return from[row] == no_supply; };
  for (std::uint32_t i = 0; i < next.supplies.size(); ++i) {
    std::uint32_t at = now.supply_of(next.supplies[i].key);
    while (at == no_supply && !unused.empty()) {
      if (is_free(unused.front())) taken.push_back(at = unused.front());
      unused = unused.subspan(1);
    }
    if (at == no_supply) {
      at = static_cast<std::uint32_t>(rows.size());
      rows.emplace_back();
      from.push_back(no_supply);
    }
    rows[at] = next.supplies[i];
    from[at] = i;
  }
  for (class_row& c : next.classes) {
    std::vector<terms> by_supply(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (from[r] != no_supply) by_supply[r] = c.by_supply[from[r]];
    c.by_supply = std::move(by_supply);
  }
  next.supplies = std::move(rows);
  return taken;
}

}  // namespace sluice::cluster
