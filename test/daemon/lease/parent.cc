// SPDX-License-Identifier: Apache-2.0
// The parent alone: reports are made by hand, so that messages can be lost where a child would
// repeat them. Units: the escrow of a node is 100.
#include "lease/parent.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lease = sluice::lease;
using lease::rate;
using lease::time_ns;

namespace {

constexpr time_ns ms = 1'000'000;
constexpr time_ns begin = 10'000 * ms;

struct node {
  unsigned id;
  lease::version applied{};
  time_ns t_parent = 0;
  rate value = 0;
};

struct bench {
  lease::parent p;
  time_ns now = begin;

  explicit bench(lease::parent::settings const& s, unsigned nodes, rate pool,
                 time_ns start = begin - 5000 * ms)
      : p(s, 7, start) {
    lease::supply_terms const t[] = {{pool, nodes, nodes * rate{100}}};
    p.set_terms(t);
  }

  lease::report report_of(node const& n, bool lend = true) const {
    lease::report r;
    r.child_incarnation = 1;
    r.t_child = now;
    r.heard = {n.t_parent ? 7u : 0u, n.t_parent};
    r.lend = lend;
    lease::holding h;
    h.applied = n.applied;
    h.held = n.value;
    h.lent = lend ? 100 : 0;
    h.members = lend ? 1 : 0;
    r.supply = {h};
    return r;
  }
  // A report and its answer; `arrives`: the child hears it and will acknowledge.
  rate ask(node& n, rate wanted, bool lend = true, bool arrives = true) {
    p.on_report(n.id, report_of(n, lend), now);
    rate const w[] = {wanted};
    auto const g = p.answer(n.id, w, now);
    REQUIRE(g);
    if (arrives) n.t_parent = g->t_parent;
    if (g->supply.empty()) return 0;
    if (arrives) {
      n.applied = g->supply[0].ver;
      n.value = g->supply[0].value;
    }
    return g->supply[0].value;
  }
};

}  // namespace

TEST_CASE("a report without an echo gets a welcome and counts for nothing", "[lease]") {
  bench b({}, 2, 0);
  node n{0};
  b.p.on_report(0, b.report_of(n), b.now);
  rate const w[] = {100};
  auto const g = b.p.answer(0, w, b.now);
  REQUIRE(g);
  CHECK(g->supply.empty());
  CHECK(g->t_child == b.now);
  CHECK(b.p.budget(0, b.now) == 0);
  CHECK_FALSE(b.p.answer(0, w, b.now));  // a welcome is said once
}

TEST_CASE("an echo older than A is not believed", "[lease]") {
  bench b({}, 2, 0);
  node n{0};
  b.ask(n, 0);
  b.now += 301 * ms;
  CHECK_FALSE(b.p.on_report(0, b.report_of(n), b.now).believed);
  CHECK(b.p.budget(0, b.now) == 0);
}

TEST_CASE("after a restart a child that claims all takes its part from others at most", "[lease]") {
  bool const is_relay = GENERATE(false, true), lies = GENERATE(false, true);
  bool const liar_first = GENERATE(false, true);
  unsigned const lives = GENERATE(1u, 8u);
  lease::parent::settings s;
  s.relay = is_relay;
  bench b(s, 2, 800, begin);  // with the escrow 1000
  std::vector<node> small(4);
  for (unsigned i = 0; i < 4; ++i) small[i] = {.id = 2 + i, .value = 50};
  node honest{.id = 1, .value = 800}, liar{.id = 0};
  std::uint64_t life = 1;
  auto const lie = [&] {
    lease::report r = b.report_of(liar);
    r.child_incarnation = life < lives ? ++life : life;
    r.supply[0].held = lies ? rate{1} << 52 : 0;
    b.p.on_report(liar.id, r, b.now);
    rate const w[] = {b.p.current(liar.id, 0, b.now)};
    if (auto const g = b.p.answer(liar.id, w, b.now)) {
      liar.t_parent = g->t_parent;
      if (!g->supply.empty() && g->supply[0].ver.incarnation != 0)
        liar.applied = g->supply[0].ver, liar.value = g->supply[0].value;
    }
  };
  auto const renew = [&](node& n) {
    b.p.on_report(n.id, b.report_of(n), b.now);
    rate const w[] = {b.p.current(n.id, 0, b.now)};
    auto const g = b.p.answer(n.id, w, b.now);
    REQUIRE(g);
    n.t_parent = g->t_parent;
    if (!g->supply.empty() && g->supply[0].ver.incarnation != 0)
      n.applied = g->supply[0].ver, n.value = g->supply[0].value;
  };
  for (; b.p.is_quiet(b.now); b.now += 100 * ms) {
    if (is_relay) b.p.set_own(0, 1000, b.now + 1000 * ms);
    if (liar_first) lie();
    renew(honest);
    for (node& n : small) renew(n);
    if (!liar_first) lie();
    CHECK(honest.value >= (lies ? 400 : 800));
    for (node const& n : small) CHECK(n.value == 50);
  }
  rate sum = b.p.current(0, 0, b.now);
  CHECK(sum <= (lies ? 400 : 0));
  for (unsigned i = 1; i < 6; ++i) sum += b.p.current(i, 0, b.now);
  CHECK(sum <= 1000);
}

TEST_CASE("after a restart no lives of a child that claims all cost others more", "[lease]") {
  unsigned const lives = GENERATE(1u, 2u, 50u);
  time_ns const first = GENERATE(20 * ms, 900 * ms), leaves = lives == 1 ? 930 * ms : 0;
  bench b({}, 2, 800, begin);  // with the escrow 1000
  std::vector<node> honest(10);
  for (unsigned i = 0; i < 10; ++i) honest[i] = {.id = 1 + i, .t_parent = begin, .value = 90};
  auto const claim = [&] {
    node liar{.id = 0, .t_parent = b.now, .value = rate{1} << 52};
    b.ask(liar, 1000);
  };
  time_ns const end = begin + 2100 * ms;
  for (b.now += 20 * ms; b.now < end; b.now += 10 * ms) {
    time_ns const at = b.now - begin;
    if (at == first) {
      for (unsigned life = 0; life < lives; ++life) {
        claim();
        if (leaves == 0) b.p.forget(0, b.now);
      }
    } else if (leaves != 0 && at >= first && at <= leaves) {
      claim();
      if (at == leaves) b.p.forget(0, b.now);
    }
    for (node& n : honest) {
      if (at % (100 * ms) != n.id * 10 * ms % (100 * ms)) continue;
      rate const had = n.value;
      b.ask(n, 90);
      if (n.applied.incarnation == 0) n.value = had;  // left out
      CAPTURE(lives, first / ms, leaves / ms, at / ms, n.id);
      CHECK(n.value >= 75);
    }
  }
}

TEST_CASE("after a restart claims are divided once per look, not for each answer", "[lease]") {
  bench b({}, 2, 800, begin);
  std::vector<node> all(200);
  for (unsigned i = 0; i < 200; ++i) all[i] = {.id = i, .t_parent = begin, .value = 10};
  b.now += 20 * ms;
  for (node& n : all) b.ask(n, 10);  // 2000 of 1000
  b.now += 100 * ms;
  for (node& n : all) b.ask(n, 10);
  CHECK(b.p.divisions() > 0);
  CHECK(b.p.divisions() <= 2);
  b.now += 300 * ms;
  for (node& n : all) n.t_parent = b.now, b.ask(n, 10);
  rate sum = 0;
  for (node const& n : all) sum += b.p.current(n.id, 0, b.now);
  CHECK(sum <= 1000);
  CHECK(sum >= 990);
}

TEST_CASE("escrow counts while it is lent for longer than a grant", "[lease]") {
  bench b({}, 2, 0);
  node n{0};
  b.ask(n, 0);
  b.now += ms;
  CHECK(b.ask(n, 500) == 100);
  CHECK(b.p.budget(0, b.now) == 100);
  // Lent from the echo for M = 1.41 s; a grant needs 1.0025 s of it.
  CHECK(b.p.budget(0, b.now + 395 * ms) == 100);
  CHECK(b.p.budget(0, b.now + 405 * ms) == 0);
}

TEST_CASE("what is given up is given on only when acknowledged", "[lease]") {
  bench b({}, 2, 0);
  node m{0}, n{1};
  b.ask(m, 0);
  b.ask(n, 0);
  b.now += ms;
  b.ask(n, 0);
  b.now += ms;
  CHECK(b.ask(m, 200) == 200);
  b.now += ms;
  CHECK(b.ask(m, 50, true, false) == 50);  // said, not heard
  CHECK(b.p.ledger(0, 0, b.now) == 200);
  CHECK(b.p.current(0, 0, b.now) == 50);
  CHECK(b.ask(n, 150) == 0);
  b.now += ms;
  CHECK(b.ask(m, 50) == 50);  // the next report still tells of the old version
  CHECK(b.ask(n, 150) == 0);
  b.now += ms;
  CHECK(b.p.on_report(m.id, b.report_of(m), b.now).freed);
  CHECK(b.ask(n, 150) == 150);
}

TEST_CASE("a grant nobody acknowledges ends after L'", "[lease]") {
  bench b({}, 2, 0);
  node m{0};
  b.ask(m, 0);
  b.now += ms;
  b.ask(m, 100);
  CHECK(b.p.ledger_sum(0, b.now + 1001 * ms) == 100);
  CHECK(b.p.ledger_sum(0, b.now + 1004 * ms) == 0);
}

TEST_CASE("an increase is judged against the newest value issued", "[lease]") {
  // n was cut and does not know; m was renewed for longer than the third node lends, then cut and
  // does not know either. Giving n what its ledger still shows would be one too many.
  for (bool const right : {true, false}) {
    lease::parent::settings s;
    s.obeys.judged_by_current = right;
    bench b(s, 3, 0);
    node m{0}, n{1}, k{2};
    for (node* x : {&m, &n, &k}) b.ask(*x, 0);
    b.now += 20 * ms;
    for (node* x : {&k, &m, &n}) b.ask(*x, 0);
    CHECK(b.ask(m, 200) == 200);
    CHECK(b.ask(n, 100) == 100);
    for (int i = 0; i < 22; ++i) {  // k is not heard any more
      b.now += 20 * ms;
      b.ask(n, 0, true, false);
      n.t_parent = b.now;  // a welcome of the same moment, say
      b.ask(m, 200);
    }
    REQUIRE(b.p.budget(0, b.now) == 200);
    REQUIRE(b.p.ledger(1, 0, b.now) == 100);
    b.now += 20 * ms;
    CHECK(b.ask(m, 100, true, false) == 100);
    CHECK(b.ask(n, 100, true, false) == (right ? 0 : 100));
    // The third node uses its escrow again, the old grant of m still runs.
    time_ns const home = begin + 1440 * ms;
    CHECK((b.p.ledger_sum(0, home) <= 200) == right);
  }
}

TEST_CASE("a restarted parent learns and renews, and raises nothing during Q", "[lease]") {
  bench b({}, 2, 0, begin);
  node m{0}, n{1};
  m.value = 150;
  m.applied = {3, 9};
  b.ask(m, 150);
  b.ask(n, 0);
  b.now += ms;
  CHECK(b.p.is_quiet(b.now));
  b.ask(n, 0);
  m.value = 150;
  CHECK(b.ask(m, 180) == 150);
  CHECK(m.applied.incarnation == 7);
  for (int i = 0; i < 11; ++i) {
    b.now += 90 * ms;
    b.ask(n, 0);
    CHECK(b.ask(m, 180) == (b.p.is_quiet(b.now) ? 150 : 180));
  }
}

TEST_CASE("just restarted, a renewal that lends do not carry yet is not cut but left out",
          "[lease]") {
  bench b({}, 2, 0, begin);
  node m{0};
  m.value = 150;
  m.applied = {3, 9};
  b.ask(m, 150);
  b.now += ms;
  b.p.on_report(0, b.report_of(m), b.now);
  rate const w[] = {150};
  auto const g = b.p.answer(0, w, b.now);
  REQUIRE(g);
  REQUIRE(g->supply.size() == 1);
  CHECK(g->supply[0].ver == lease::version{});
}

TEST_CASE("an orphan keeps its escrow while the parent may not raise anything", "[lease]") {
  bench b({}, 2, 0, begin);
  node n{0};
  b.ask(n, 100, false);
  b.now += ms;
  b.p.on_report(0, b.report_of(n, false), b.now);
  rate const w[] = {100};
  CHECK(b.p.answer(0, w, b.now)->supply.empty());
  b.now += 1100 * ms;
  n.t_parent = b.now;
  b.p.on_report(0, b.report_of(n, false), b.now);
  CHECK(b.p.answer(0, w, b.now)->supply.size() == 1);
}

TEST_CASE("the pool needs lends of more than half of the nodes", "[lease]") {
  for (auto const owner :
       {lease::pool_owner::majority, lease::pool_owner::single, lease::pool_owner::none}) {
    lease::parent::settings s;
    s.owner = owner;
    bench b(s, 4, 1000);
    node n[] = {{0}, {1}, {2}};
    for (node& x : n) b.ask(x, 0);
    b.now += ms;
    b.ask(n[0], 0);
    b.ask(n[1], 0);
    rate const pool = owner == lease::pool_owner::single ? 1000 : 0;
    CHECK(b.p.budget(0, b.now) == 200 + pool);
    b.ask(n[2], 0);
    CHECK(b.p.budget(0, b.now) == (owner == lease::pool_owner::none ? 300 : 1300));
  }
}

TEST_CASE("a full ring refuses increases and never forgets", "[lease]") {
  bench b({}, 1, 1000);
  node n{0};
  b.ask(n, 0);
  b.now += ms;
  b.ask(n, 0);
  b.now += ms;
  b.ask(n, 900, true, false);
  for (int i = 0; i < 40; ++i) {
    b.now += ms;
    rate const to = i % 2 ? 10 + static_cast<rate>(i) : 500 - static_cast<rate>(i);
    CHECK(b.ask(n, to, true, false) <= to);
    CHECK(b.p.ledger(0, 0, b.now) == 900);
  }
}

TEST_CASE("a forgotten child stays in the ledger until its grant ends", "[lease]") {
  bench b({}, 2, 0);
  node m{0};
  b.ask(m, 0);
  b.now += ms;
  b.ask(m, 100);
  b.p.forget(0, b.now);
  CHECK(b.p.ledger(0, 0, b.now) == 0);
  CHECK(b.p.ledger_sum(0, b.now) == 100);
  CHECK(b.p.budget(0, b.now) == 0);
  CHECK(b.p.ledger_sum(0, b.now + 1100 * ms) == 0);
}

TEST_CASE("many lives of a child together get no more than one", "[lease]") {
  bench b({}, 2, 1000);
  node m{0}, n{1};
  b.ask(m, 0);
  b.ask(n, 0);
  b.now += ms;
  b.ask(m, 500, false);
  rate most = 0;
  for (int life = 0; life < 100; ++life) {
    b.now += 5 * ms;
    b.p.forget(0, b.now);
    m.applied = {}, m.value = 0;
    b.ask(m, 500, false);
    most = std::max(most, b.p.ledger(0, 0, b.now) + b.p.left_by(0, 0, b.now));
  }
  CHECK(most == 500);
  CHECK(b.p.ledger_sum(0, b.now) == 500);
  b.ask(n, 0);
  CHECK(b.ask(n, 500, false) == 500);
  b.now += 1100 * ms;
  b.ask(m, 0, false);
  CHECK(b.ask(m, 500, false) == 500);  // what the lives had has ended
}

namespace {

// Once, for 30 ms, n wants little and m is wanted to have nearly all. n is asked every 10 ms, and
// so is m, by `of_m`. The longest time that n has less than it should, after that.
template <class F>
time_ns blocked_after_dip(bench& b, node& n, F of_m) {
  time_ns since = 0, longest = 0;
  b.ask(n, 0, false);
  for (int step = 0; step < 400; ++step, b.now += 10 * ms) {
    bool const dip = step >= 200 && step < 203;
    rate const has = b.ask(n, dip ? 50 : 1000, false);
    of_m(dip ? 1950 : 1000);
    if (step < 203 || has == 1000) since = b.now;
    longest = std::max(longest, b.now - since);
  }
  return longest;
}

}  // namespace

TEST_CASE("lives of a child keep nothing of a moment in which others want little", "[lease]") {
  bench b({}, 2, 2000);
  node m{0}, n{1};
  b.ask(m, 0, false);
  CHECK(blocked_after_dip(b, n, [&](rate wanted) {
          if (b.ask(m, wanted, false) > 0) b.p.forget(0, b.now);
          m.applied = {}, m.value = 0;
        }) <= 20 * ms);
}

TEST_CASE("a child that acknowledges nothing keeps nothing of a moment twice", "[lease]") {
  bench b({}, 2, 2000);
  node m{0}, n{1};
  b.ask(m, 0, false);
  auto const is_mute = [&](rate wanted) {
    b.ask(m, wanted, false);
    m.applied = {};
  };
  blocked_after_dip(b, n, is_mute);
  CHECK(blocked_after_dip(b, n, is_mute) <= 20 * ms);
}

TEST_CASE("a child that gives up at once is raised at once", "[lease]") {
  bench b({}, 2, 2000);
  node m{0};
  b.ask(m, 0, false);
  for (int i = 0; i < 40; ++i, b.now += 100 * ms)
    CHECK(b.ask(m, i % 2 ? 1900 : 100, false) == (i % 2 ? 1900 : 100));
}

TEST_CASE("a child that was late once gets its fair part at once in each burst", "[lease]") {
  bench b({}, 2, 2000);
  node m{0}, n{1};
  b.ask(m, 0, false);
  b.ask(n, 0, false);
  b.ask(m, 1900, false);
  for (int i = 0; i < 7; ++i, b.now += 100 * ms) b.ask(m, i < 6 ? 0 : 1900, false, i == 6);
  for (int i = 0; i < 80; ++i, b.now += 100 * ms) {
    bool const bursts = i % 8 == 7;
    rate const has = b.ask(m, bursts ? 1900 : 0, false);
    CHECK(has == (bursts ? 1000 : 0));
    b.ask(n, i % 40 == 1 ? 1 : 0, false);
  }
}

TEST_CASE("a restarted child is raised to what it is wanted to have for a lease", "[lease]") {
  bench b({}, 2, 2000);
  node m{0};
  b.ask(m, 0, false);
  CHECK(b.ask(m, 500, false) == 500);
  b.p.forget(0, b.now);
  m.applied = {}, m.value = 0;
  b.ask(m, 0, false);
  for (int i = 0; i < 11; ++i, b.now += 100 * ms) b.ask(m, 1500, false);
  CHECK(b.ask(m, 1500, false) == 1500);
}

TEST_CASE("lives that are over hold back escrow only if it was given to them", "[lease]") {
  for (bool const orphan : {false, true}) {
    lease::parent::settings s;
    s.relay = true;
    s.time.level = 1;
    bench b(s, 2, 0);
    node m{0}, n{1};
    b.p.set_own(0, 200, b.now + 5000 * ms);
    b.p.set_orphan(orphan);
    for (node* x : {&m, &n, &m, &n}) b.ask(*x, 0);
    b.now += ms;
    CHECK(b.ask(m, 150) == 150);
    CHECK(b.ask(n, 0) == 0);
    b.p.forget(0, b.now);
    REQUIRE(b.p.left_by(0, 0, b.now) == 150);
    m = node{0};
    b.ask(m, 0);
    b.now += ms;
    b.p.set_orphan(false);
    b.ask(m, 0);
    std::uint32_t members = 0;
    CHECK(b.p.lent_below(0, b.now, members) == (orphan ? 50 : 200));
  }
}

TEST_CASE("claims of escrow above the policy's are cut", "[lease]") {
  bench b({}, 2, 0);
  node n{0};
  b.ask(n, 0);
  b.now += ms;
  lease::report r = b.report_of(n);
  r.supply[0].lent = 1'000'000;
  r.supply[0].members = 99;
  r.supply[0].held = ~rate{0};
  r.supply[0].applied = {7, 1000};
  b.p.on_report(0, r, b.now);
  CHECK(b.p.budget(0, b.now) == 200);
}

TEST_CASE("a supply is unused only when all that was given and lent of it has ended", "[lease]") {
  lease::timers const time;
  bool const says_bye = GENERATE(false, true);
  bench b({}, 1, 800);
  node n{0};
  CHECK(b.p.is_unused(0, b.now));
  b.ask(n, 500);
  REQUIRE(b.ask(n, 500) == 500);
  time_ns const given_at = b.now;
  b.p.set_terms({});
  if (says_bye) b.p.forget(0, b.now);
  CHECK_FALSE(b.p.is_unused(0, b.now));
  CHECK_FALSE(b.p.is_unused(0, given_at + time.lease_ns));
  if (!says_bye) CHECK_FALSE(b.p.is_unused(0, given_at + time.ledger_ns() + ms));  // it lends
  b.now = given_at + time.lend_ns() + ms;
  REQUIRE(b.p.is_unused(0, b.now));
  b.p.renew(0);
  lease::supply_terms const other[] = {{800, 1, 100}};
  b.p.set_terms(other);
  CHECK(b.p.ledger_sum(0, b.now) == 0);
}

TEST_CASE("by majority only who gives a pool away rules", "[lease]") {
  lease::parent::settings s;
  s.owner = lease::pool_owner::majority;
  bench b(s, 3, 800), shares_nothing(s, 3, 0);
  std::vector<node> nodes = {{.id = 0}, {.id = 1}};
  CHECK_FALSE(b.p.is_ruling(b.now));
  CHECK_FALSE(shares_nothing.p.is_ruling(b.now));  // though nobody else has a pool
  for (unsigned turn = 0; turn < 2; ++turn)
    for (node& n : nodes) b.ask(n, 0), shares_nothing.ask(n, 0);
  CHECK(b.p.is_ruling(b.now));
  CHECK_FALSE(shares_nothing.p.is_ruling(b.now));
  CHECK(bench({}, 3, 0).p.is_ruling(b.now));
}
