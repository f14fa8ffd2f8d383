// SPDX-License-Identifier: Apache-2.0
// The child alone, and a child with a real parent over a perfect network.
#include "lease/child.h"

#include <catch2/catch.hpp>
#include <deque>

#include "lease/parent.h"
#include "lease/relay.h"
#include "lib/lease_memory.h"

namespace lease = sluice::lease;
using lease::rate;
using lease::time_ns;

namespace {

constexpr time_ns ms = 1'000'000;
constexpr std::uint64_t a_parent = 11, b_parent = 22;

lease::child make_child(rate floor = 1, rate escrow = 100) {
  lease::child c(lease::timers{}, 5);
  lease::child::own const mine[] = {{floor, escrow, 1}};
  c.set_own(mine);
  return c;
}

lease::grant welcome(std::uint64_t incarnation, time_ns t_child, time_ns t_parent) {
  lease::grant g;
  g.parent_incarnation = incarnation;
  g.t_parent = t_parent;
  g.child_incarnation = 5;
  g.t_child = t_child;
  return g;
}

lease::grant grant_of(std::uint64_t incarnation, time_ns t_child, std::uint64_t counter,
                      rate value) {
  lease::grant g = welcome(incarnation, t_child, t_child + 1);
  g.supply = {{{incarnation, counter}, value, 1000 * ms}};
  return g;
}

// Attached to a_parent and lending since `now`, which is returned.
time_ns attach(lease::child& c, time_ns now) {
  CHECK_FALSE(c.make_report(a_parent, now).lend);
  CHECK(c.on_grant(a_parent, welcome(1, now, 1), now));
  CHECK_FALSE(c.make_report(a_parent, now + ms).lend);
  CHECK(c.on_grant(a_parent, grant_of(1, now + ms, 1, 0), now + ms));
  CHECK(c.make_report(a_parent, now + 2 * ms).lend);
  return now + 2 * ms;
}

}  // namespace

TEST_CASE("a child lends to a parent that has answered with values", "[lease]") {
  lease::child c = make_child();
  CHECK(c.usable(0, 0) == 101);
  time_ns const now = attach(c, 1000 * ms);
  CHECK(c.usable(0, now) == 1);
  CHECK(c.lent_until() == now + lease::timers{}.lend_ns());
  CHECK(c.usable(0, c.lent_until()) == 101);
}

TEST_CASE("what a child owns is not its own while another process of its name lends it",
          "[lease]") {
  lease::child c = make_child();
  time_ns const now = attach(c, 1000 * ms), home = c.lent_until();
  c.displaced(now + 100 * ms);  // no lend gets shorter
  CHECK(c.lent_until() == home);
  c.displaced(home + 5000 * ms);
  CHECK(c.usable(0, home) == 1);
  CHECK_FALSE(c.make_report(a_parent, home).lend);
  CHECK(c.on_grant(a_parent, grant_of(1, home, 2, 500), home));
  CHECK(c.usable(0, home) == 501);
  CHECK_FALSE(c.make_report(a_parent, home + ms).lend);
  CHECK(c.usable(0, home + 5000 * ms) == 101);
}

TEST_CASE("a lease runs from the report that is answered", "[lease]") {
  lease::child c = make_child();
  time_ns const now = attach(c, 1000 * ms);
  CHECK(c.on_grant(a_parent, grant_of(1, now, 2, 500), now + 400 * ms));
  CHECK(c.usable(0, now + 999 * ms) == 501);
  CHECK(c.usable(0, now + 1000 * ms) == 1);
  lease::child late = make_child();
  attach(late, 1000 * ms);
  CHECK_FALSE(late.on_grant(a_parent, grant_of(1, now, 2, 500), now + 1000 * ms));
  CHECK(late.usable(0, now + 1000 * ms) == 1);
}

TEST_CASE("versions are never applied backwards", "[lease]") {
  lease::child c = make_child();
  time_ns const now = attach(c, 1000 * ms);
  c.on_grant(a_parent, grant_of(1, now, 3, 50), now);
  CHECK_FALSE(c.on_grant(a_parent, grant_of(1, now, 2, 500), now));
  CHECK(c.held(0, now) == 50);
  CHECK(c.make_report(a_parent, now + ms).supply[0].applied == lease::version{1, 3});
  CHECK_FALSE(c.on_grant(a_parent, grant_of(0, now, 9, 500), now));  // an older incarnation
  CHECK_FALSE(c.on_grant(b_parent, grant_of(9, now, 9, 500), now));  // not asked
}

TEST_CASE("a silent parent is no longer lent to, and no other before the lend has ended",
          "[lease]") {
  lease::child c = make_child();
  time_ns now = attach(c, 1000 * ms);
  time_ns const lent = c.lent_until();
  now += 340 * ms;
  CHECK_FALSE(c.is_silent(now));
  now += 20 * ms;
  CHECK(c.is_silent(now));
  CHECK_FALSE(c.make_report(a_parent, now).lend);
  CHECK(c.lent_until() == lent);
  c.make_report(b_parent, now);
  c.on_grant(b_parent, welcome(8, now, 1), now);
  c.make_report(b_parent, now + ms);
  c.on_grant(b_parent, grant_of(8, now + ms, 1, 70), now + ms);
  CHECK(c.held(0, now + ms) == 0);  // not obeyed yet
  CHECK_FALSE(c.make_report(b_parent, now + 2 * ms).lend);
  now = lent;
  CHECK(c.usable(0, now) == 101);
  CHECK_FALSE(c.make_report(b_parent, now).lend);  // its answer is too old
  c.on_grant(b_parent, grant_of(8, now, 1, 70), now);
  CHECK(c.make_report(b_parent, now + ms).lend);
  CHECK(c.usable(0, now + ms) == 71);
}

TEST_CASE("visits to a dead parent do not prolong its lend", "[lease]") {
  lease::child c = make_child();
  time_ns now = attach(c, 1000 * ms);
  time_ns const lent = c.lent_until();
  now += 400 * ms;
  CHECK_FALSE(c.make_report(b_parent, now).lend);
  CHECK_FALSE(c.make_report(a_parent, now + 100 * ms).lend);
  CHECK(c.lent_until() == lent);
}

TEST_CASE("a parent that answers without values is no longer lent to", "[lease]") {
  lease::child c = make_child();
  time_ns const begin = attach(c, 1000 * ms);
  time_ns now = begin, lent = 0;
  for (; now < begin + 3000 * ms; now += 100 * ms) {
    if (c.make_report(a_parent, now).lend) lent = now;
    c.on_grant(a_parent, welcome(1, now, now), now + 50 * ms);
  }
  CHECK_FALSE(c.is_silent(now));
  CHECK(lent <= begin + 500 * ms);
  CHECK(c.usable(0, lent + lease::timers{}.lend_ns()) == 101);
  // Values again: they are worth a lend.
  c.make_report(a_parent, now);
  c.on_grant(a_parent, grant_of(1, now, 2, 30), now);
  CHECK(c.make_report(a_parent, now + ms).lend);
}

TEST_CASE("a quick restart of the parent does not interrupt a lend", "[lease]") {
  lease::child c = make_child();
  time_ns const now = attach(c, 1000 * ms) + 340 * ms;
  CHECK(c.make_report(a_parent, now).lend);
  c.on_grant(a_parent, welcome(2, now, 1), now + 20 * ms);
  CHECK(c.make_report(a_parent, now + 21 * ms).lend);  // older than S, but only now without values
}

TEST_CASE("parent and child: a round trip beyond A leaves the child its escrow", "[lease]") {
  lease::parent p({}, 3, 0);
  lease::supply_terms const t[] = {{1000, 1, 100}};
  p.set_terms(t);
  lease::child c = make_child();
  rate const w[] = {5000};
  std::deque<lease::report> up;  // one a cycle, two on their way
  std::deque<lease::grant> down;
  time_ns now = 5000 * ms;
  for (int cycle = 0; cycle < 80; ++cycle, now += 100 * ms) {
    std::size_t const late = cycle < 10 ? 0 : 2;  // 0.2 s each way
    up.push_back(c.make_report(a_parent, now));
    for (; up.size() > late; up.pop_front()) {
      p.on_report(0, up.front(), now);
      if (auto g = p.answer(0, w, now)) down.push_back(*g);
    }
    for (; down.size() > late; down.pop_front()) c.on_grant(a_parent, down.front(), now);
    if (cycle == 9) CHECK(c.held(0, now) == 1100);
  }
  CHECK(c.usable(0, now) == 101);
}

TEST_CASE("after a reboot the escrow may be lent to somebody unknown", "[lease]") {
  lease::child c = make_child();
  time_ns const boot = 50 * ms;
  c.booted(boot);
  CHECK(c.usable(0, boot) == 1);
  c.make_report(a_parent, boot);
  c.on_grant(a_parent, welcome(1, boot, 1), boot);
  c.make_report(a_parent, boot);
  c.on_grant(a_parent, grant_of(1, boot, 1, 40), boot);
  CHECK(c.usable(0, boot) == 41);  // grants are obeyed meanwhile
  CHECK_FALSE(c.make_report(a_parent, boot + ms).lend);
  CHECK(c.usable(0, boot + lease::timers{}.start_ns()) == 101);
}

TEST_CASE("a restarted daemon goes on where it was", "[lease]") {
  lease::child c = make_child();
  time_ns now = attach(c, 1000 * ms);
  c.on_grant(a_parent, grant_of(1, now, 2, 500), now);
  lease::child_memory const m = c.memory();
  lease::child d(lease::timers{}, 6);
  lease::child::own const mine[] = {{1, 100, 1}};
  d.set_own(mine);
  now += 200 * ms;
  d.remember(m, now);
  CHECK(sluice::test::is_same_state(m, d.memory()));
  CHECK(d.usable(0, now) == 501);
  CHECK(d.usable(0, now + 800 * ms) == 1);
  CHECK(d.lent_until() == now + lease::timers{}.start_ns());
  CHECK_FALSE(d.on_grant(a_parent, grant_of(1, now, 3, 900), now));  // for the former process
  lease::report const r = d.make_report(a_parent, now);
  CHECK(r.supply[0].applied == lease::version{1, 2});
  CHECK(r.supply[0].held == 500);
}

TEST_CASE("a daemon that restarts before the wait after a boot is over waits on", "[lease]") {
  lease::child c = make_child();
  time_ns const boot = 50 * ms;
  c.booted(boot);
  c.make_report(a_parent, boot);
  c.on_grant(a_parent, welcome(1, boot, 1), boot);
  c.make_report(a_parent, boot);
  c.on_grant(a_parent, grant_of(1, boot, 1, 40), boot);
  lease::child d(lease::timers{}, 6);
  lease::child::own const mine[] = {{1, 100, 1}};
  d.set_own(mine);
  d.remember(c.memory(), boot + ms);
  CHECK_FALSE(d.is_orphan(boot + ms));
  CHECK(d.lent_until() == c.lent_until());
  // The version is known as that of a_parent, so less under a newer one takes effect.
  CHECK(d.usable(0, boot + ms) == 41);
  d.make_report(a_parent, boot + ms);
  lease::grant g = grant_of(1, boot + ms, 2, 10);
  g.child_incarnation = 6;
  d.on_grant(a_parent, g, boot + ms);
  CHECK(d.usable(0, boot + ms) == 11);
}

TEST_CASE("a child that starts waits for the M of the parent that it finds", "[lease]") {
  lease::child c = make_child();
  c.booted(1000 * ms);
  lease::timers const slow = lease::timers_of(1000 * ms, 10'000 * ms, 1);
  c.set_timers(slow);
  CHECK(c.lent_until() == 1000 * ms + slow.lend_ns());
}

TEST_CASE("a restart acknowledges nothing by itself", "[lease]") {
  lease::child c = make_child();
  time_ns const now = attach(c, 1000 * ms);
  c.on_grant(a_parent, grant_of(1, now, 2, 500), now);
  c.hold_acknowledgement(0, true);
  lease::child d(lease::timers{}, 6);
  lease::child::own const mine[] = {{1, 100, 1}};
  d.set_own(mine);
  d.remember(c.memory(), now);
  d.hold_acknowledgement(0, true);
  CHECK(d.make_report(a_parent, now).supply[0].applied == lease::version{});
  d.hold_acknowledgement(0, false);
  CHECK(d.make_report(a_parent, now).supply[0].applied == lease::version{1, 2});
}

TEST_CASE("back at a parent, a grant of the visit before is refused", "[lease]") {
  lease::child c = make_child();
  time_ns const now = attach(c, 1000 * ms);
  c.on_grant(a_parent, grant_of(1, now, 3, 30), now);  // and version 2 is acknowledged away
  c.make_report(b_parent, now + ms);
  c.make_report(a_parent, now + 2 * ms);
  CHECK_FALSE(c.on_grant(a_parent, grant_of(1, now, 2, 900), now + 3 * ms));
  CHECK(c.held(0, now + 3 * ms) == 30);
  c.on_grant(a_parent, welcome(1, now + 2 * ms, now), now + 3 * ms);
  CHECK_FALSE(c.on_grant(a_parent, grant_of(1, now, 4, 900), now + 3 * ms));
}

TEST_CASE("a grant of the former parent is used until it ends", "[lease]") {
  lease::child c = make_child();
  // Answered after a silence, when nothing new was lent: the grant outlives the lend.
  time_ns const late = attach(c, 1000 * ms) + 1000 * ms;
  CHECK_FALSE(c.make_report(a_parent, late).lend);
  c.on_grant(a_parent, grant_of(1, late, 2, 300), late);
  time_ns const now = c.lent_until();
  REQUIRE(now + 10 * ms < late + 1000 * ms);
  c.make_report(b_parent, now);
  c.on_grant(b_parent, welcome(8, now, 1), now);
  c.make_report(b_parent, now + ms);
  c.on_grant(b_parent, grant_of(8, now + ms, 1, 20), now + ms);
  CHECK(c.held(0, now + ms) == 300);
  CHECK(c.granted(0, now + ms) == 20);
  CHECK(c.make_report(b_parent, now + 2 * ms).supply[0].held == 20);
  CHECK(c.held(0, late + 1000 * ms) == 20);
  CHECK(c.held_until(0, late + 1000 * ms) == now + 1001 * ms);
}

TEST_CASE("parent and child: full share after first contact", "[lease]") {
  lease::parent p({}, 3, 0);
  lease::supply_terms const t[] = {{1000, 1, 100}};
  p.set_terms(t);
  lease::child c = make_child();
  time_ns now = 5000 * ms;
  rate const w[] = {5000};
  for (int i = 0; i < 4; ++i) {
    p.on_report(0, c.make_report(a_parent, now), now);
    auto const g = p.answer(0, w, now);
    REQUIRE(g);
    c.on_grant(a_parent, *g, now);
    now += ms;
  }
  CHECK(c.held(0, now) == 1100);
  CHECK(p.ledger_sum(0, now) == 1100);
}

TEST_CASE("a relay acknowledges a decrease when the ledgers below fit", "[lease]") {
  lease::parent::settings s;
  s.relay = true;
  s.time.level = 1;
  lease::parent down(s, 4, 0);
  lease::supply_terms const t[] = {{0, 1, 0}};
  down.set_terms(t);
  lease::child up(lease::timers{}, 5);
  lease::child::own const mine[] = {{}};
  up.set_own(mine);
  time_ns now = attach(up, 5000 * ms);
  up.on_grant(a_parent, grant_of(1, now, 2, 100), now);
  lease::relay_serve(up, down, 1, now);
  lease::child node(s.time, 9);
  node.set_own(mine);
  rate const w[] = {100};
  std::optional<lease::grant> g;
  for (int i = 0; i < 3; ++i) {
    down.on_report(0, node.make_report(77, now), now);
    g = down.answer(0, w, now);
    REQUIRE(g);
    node.on_grant(77, *g, now);
  }
  CHECK(node.held(0, now) == 100);
  CHECK(node.held_until(0, now) < up.held_until(0, now));  // nested
  lease::relay_lend(up, down, 1, now);
  CHECK(up.make_report(a_parent, now).supply[0].applied == lease::version{1, 2});
  // Less from above: not acknowledged before the node has heard it.
  up.on_grant(a_parent, grant_of(1, now, 3, 40), now);
  lease::relay_serve(up, down, 1, now);
  CHECK_FALSE(lease::relay_owes_ack(up, down, 1, now));
  lease::relay_lend(up, down, 1, now);
  CHECK(up.make_report(a_parent, now).supply[0].applied == lease::version{1, 2});
  now += 30 * ms;
  for (int i = 0; i < 2; ++i) {
    down.on_report(0, node.make_report(77, now), now);
    g = down.answer(0, w, now);
    REQUIRE(g);
    node.on_grant(77, *g, now);
  }
  CHECK(node.held(0, now) == 40);
  CHECK(lease::relay_owes_ack(up, down, 1, now));
  lease::relay_lend(up, down, 1, now);
  CHECK(up.make_report(a_parent, now).supply[0].applied == lease::version{1, 3});
}
