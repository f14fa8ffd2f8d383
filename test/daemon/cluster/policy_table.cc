// SPDX-License-Identifier: Apache-2.0
// Policies that name other supplies each time: rows are used again, but not before what was granted
// of them has ended, and no message names more than all accept.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/most_supplies.h"
#include "cluster/arbiter.h"
#include "cluster/relay_side.h"
#include "lease/child.h"
#include "wire/codec.h"

using namespace sluice;
using cluster::policy_table;
using lease::time_ns;

namespace {

constexpr time_ns ms = 1'000'000;
constexpr cluster::rate k = 1'000'000;

policy_table plan_of(std::string const& prefix, unsigned supplies) {
  policy_table p;
  for (unsigned i = 0; i < supplies; ++i) {
    cluster::supply_row row;
    std::string const target = prefix + std::to_string(i);
    row.key = wire::supply_key("metadata", target);
    row.resource = "metadata";
    row.name = "metadata@" + target;
    row.capacity = row.lease.pool = 100 * k;
    p.supplies.push_back(row);
  }
  p.classes.push_back({0, "", std::vector<cluster::terms>(supplies)});
  return p;
}

lease::timers const timers = lease::timers_of(100 * ms, 1000 * ms, 0);

struct last_grant : cluster::outbox {
  std::optional<wire::grant> grant;
  bool send(std::uint32_t, wire::message const& m) override {
    if (auto const* g = std::get_if<wire::grant>(&m)) grant = *g;
    return true;
  }
};

/// A controller and one node that has a job on all that it knows, and forgets nothing.
struct bench {
  time_ns now = 100'000 * ms;
  cluster::arbiter top;
  lease::child node{timers, 5};
  std::vector<std::uint32_t> keys;  // of the node, by its number
  last_grant out;

  explicit bench(policy_table const& p)
      : top({.name = "top", .time = timers}, p, 1, now - 60'000 * ms) {
    top.hello(0, {.who = wire::role::node, .name = "n1"}, {"n1", 5}, now, out);
    node.booted(now - 60'000 * ms);
    follow(p);
  }

  void follow(policy_table const& p) {
    for (auto const& s : p.supplies)
      if (number(s.key) == keys.size()) keys.push_back(s.key);
    node.set_own(std::vector<lease::child::own>(keys.size()));
  }
  std::size_t number(std::uint32_t key) const {
    return static_cast<std::size_t>(std::ranges::find(keys, key) - keys.begin());
  }
  cluster::rate held(std::string const& target) const {
    return node.held(static_cast<unsigned>(number(wire::supply_key("metadata", target))), now);
  }
  /// A report of the job on the supplies of the policy in force, and what comes back.
  void talk() {
    auto const& rows = top.policy().supplies;
    lease::report const all = node.make_report(9, now);
    wire::report r;
    r.lease = all;
    r.lease.supply.clear();
    for (auto const& row : rows) {
      if (row.capacity == 0) continue;
      auto const place = static_cast<std::uint32_t>(r.supplies.size());
      r.supplies.push_back(row.key);
      r.lease.supply.push_back(all.supply[number(row.key)]);
      wire::stream_report& s = r.streams.emplace_back();
      s.job = 77;
      s.supply = place;
      s.waiters = 4;
      s.waiting = 4000;
    }
    r.applied_sequence = out.grant ? out.grant->sequence : 0;
    top.report(0, r, now);
    top.settle(now, out);
    hear();
    now += 100 * ms;
  }
  void hear() {
    if (!out.grant) return;
    lease::grant mine = out.grant->lease;
    mine.supply.assign(keys.size(), {});
    for (std::size_t i = 0; i < out.grant->supplies.size(); ++i)
      mine.supply[number(out.grant->supplies[i])] = out.grant->lease.supply[i];
    node.on_grant(9, mine, now);
  }
  void rename(std::string const& prefix, unsigned supplies) {
    policy_table const p = plan_of(prefix, supplies);
    top.set_policy(p, now);
    follow(p);
  }
};

bool is_accepted(wire::message const& m) {
  std::vector<std::byte> bytes;
  wire::encode({}, m, bytes);
  return wire::decode(bytes).refused == nullptr;
}

}  // namespace

TEST_CASE("align: a new supply takes a row that is gone, only an unused one", "[cluster]") {
  policy_table const first = plan_of("a", 3);
  policy_table second = plan_of("b", 2);
  second.supplies.push_back(first.supplies[1]);
  second.classes[0].by_supply = {{.weight = 1}, {.weight = 2}, {.weight = 3}};
  std::uint32_t const unused[] = {1, 2};
  CHECK(cluster::align(second, first, unused) == std::vector<std::uint32_t>{2});
  REQUIRE(second.supplies.size() == 4);
  CHECK(second.supplies[0].name == "metadata@a0");
  CHECK(second.supplies[0].capacity == 0);
  CHECK(second.supplies[1].name == "metadata@a1");
  CHECK(second.supplies[2].name == "metadata@b0");
  CHECK(second.supplies[3].name == "metadata@b1");
  CHECK(second.classes[0].by_supply[1].weight == 3);
  CHECK(second.classes[0].by_supply[2].weight == 1);
  CHECK(second.classes[0].by_supply[3].weight == 2);
}

TEST_CASE("renames: a row is not used again before what was granted of it has ended", "[cluster]") {
  bench b(plan_of("a", 1));
  for (int i = 0; i < 20; ++i) b.talk();
  REQUIRE(b.held("a0") >= 90 * k);
  time_ns const began = b.now;
  b.rename("b", 1);  // and no word to the node: its grant runs on
  CHECK(b.top.policy().supplies.size() == 2);
  CHECK(b.top.ledger().ledger_sum(0, b.now) >= 90 * k);
  b.now = began + 800 * ms;
  b.rename("c", 1);
  REQUIRE(b.held("a0") > 0);
  CHECK(b.top.policy().supply_of(wire::supply_key("metadata", "a0")) == 0);
  b.now = began + 20'000 * ms;
  for (int i = 0; i < 20; ++i) b.top.settle(b.now += 100 * ms, b.out);  // who is silent goes
  REQUIRE(b.held("a0") == 0);
  b.rename("d", 1);
  CHECK(b.top.policy().supply_of(wire::supply_key("metadata", "a0")) == cluster::no_supply);
  CHECK(b.top.policy().supplies.size() <= 3);
}

TEST_CASE("renames: after ten thousand, and back, a node has its grant", "[cluster]") {
  constexpr unsigned supplies = 12, renames = 10'000;
  bench b(plan_of("first", supplies));
  std::size_t widest = 0, longest = 0;
  for (unsigned n = 0; n < renames; ++n) {
    b.rename("p" + std::to_string(n) + "-", supplies);
    b.keys.erase(b.keys.begin(), b.keys.end() - supplies);  // a node that starts anew
    b.node = lease::child(timers, 6 + n);
    b.node.set_own(std::vector<lease::child::own>(supplies));
    b.node.booted(b.now - 60'000 * ms);
    for (int i = 0; i < 3; ++i) b.talk();
    widest = std::max(widest, b.top.policy().supplies.size());
    longest = std::max(longest, b.out.grant->supplies.size());
  }
  CHECK(widest <= 10 * supplies);  // those of the last lease, and the time it takes to see that
  CHECK(longest <= most_supplies);
  b.rename("first", supplies);
  for (int i = 0; i < 40; ++i) b.talk();
  CHECK(is_accepted(*b.out.grant));
  for (unsigned i = 0; i < supplies; ++i) CHECK(b.held("first" + std::to_string(i)) >= 90 * k);
}

TEST_CASE("renames: however many at once, messages of controller and relay are accepted",
          "[cluster][relay]") {
  bench b(plan_of("first", 200));
  for (int i = 0; i < 20; ++i) b.talk();
  lease::timers const below = lease::timers_of(100 * ms, 1000 * ms, 1);
  cluster::arbiter::settings const set = {wire::role::relay, "relay", below};
  cluster::arbiter under(set, plan_of("first", 200), 2, b.now - 60'000 * ms);
  cluster::relay_side relay(under, 2);
  relay.booted(b.now - 60'000 * ms);
  relay.on_welcome({wire::role::cluster, 0, 100 * ms, 1000 * ms, 0, "top"});
  for (unsigned n = 0; n < 5; ++n) {
    policy_table const p = plan_of("p" + std::to_string(n) + "-", 200);
    b.rename("p" + std::to_string(n) + "-", 200);
    under.set_policy(p, b.now);
    relay.plan_changed();
    b.talk();
    CHECK(is_accepted(*b.out.grant));
    CHECK(is_accepted(relay.make_report(b.now)));
  }
  for (int i = 0; i < 40; ++i) b.talk();
  CHECK(b.held("p4-0") >= 90 * k);
  CHECK(b.held("p4-199") >= 90 * k);
}
