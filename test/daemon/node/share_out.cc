// SPDX-License-Identifier: Apache-2.0
// How a node divides what it may use: in no phase more than it has, no job above its ceiling, and
// nothing left lying while somebody may take it.
#include "node/share_out.h"

#include <catch2/catch.hpp>
#include <random>

#include "core/token_bucket.h"
#include "node/curves.h"

using namespace sluice;
using node::phases;
using node::rate;
using node::share_claim;
using node::share_supply;

namespace {

share_claim claim(std::uint32_t weight, rate granted, rate limit = policies::unbounded) {
  share_claim c;
  c.policy.weight = weight;
  c.policy.limit = limit;
  c.policy.blocked = true;
  c.granted = granted;
  return c;
}

phases sum_of(std::vector<phases> const& all) {
  phases sum;
  for (auto const& p : all) {
    sum.now += p.now;
    sum.after += p.after;
    sum.own += p.own;
  }
  return sum;
}

std::vector<phases> grant(share_supply const& s, bool split, std::vector<share_claim> const& c,
                          std::vector<phases> before = {}) {
  before.resize(c.size());
  std::vector<phases> out(c.size());
  node::share_grant(s, split, c, before, out);
  return out;
}

}  // namespace

TEST_CASE("a grant goes as the parent split it, the floor on top", "[node][share]") {
  share_supply const s = {100'000, 1'000, 20'000, 0, 1'000'000};
  auto const out = grant(s, true, {claim(1000, 70'000), claim(1000, 30'000)});
  CHECK(out[0].now == 70'500);
  CHECK(out[1].now == 30'500);
  auto const sum = sum_of(out);
  CHECK(sum.after <= 1'000);
  CHECK(sum.after >= 998);
  CHECK(sum.own <= 21'000);
  CHECK(sum.own >= 20'998);
}

TEST_CASE("a split that does not fit is scaled", "[node][share]") {
  share_supply const s = {50'000, 0, 0, 0, 1'000'000};
  auto const out = grant(s, true, {claim(1000, 70'000), claim(1000, 30'000)});
  CHECK(out[0].now == 35'000);
  CHECK(out[1].now == 15'000);
}

TEST_CASE("a class limit that spans nodes is not exceeded by what is left over", "[node][share]") {
  share_supply const s = {100'000, 1'000, 0, 0, 1'000'000};
  share_claim capped = claim(1000, 10'000, 40'000);
  capped.is_capped = true;
  auto const out = grant(s, true, {capped, claim(1000, 50'000)});
  CHECK(out[0].now == 10'000);
  CHECK(out[1].now == 91'000);
}

TEST_CASE("without a split the proportions stay", "[node][share]") {
  share_supply const s = {100'000, 0, 0, 0, 1'000'000};
  auto const out = grant(s, false, {claim(1000, 0), claim(1000, 0)},
                         {phases{150'000, 0, 0}, phases{50'000, 0, 0}});
  CHECK(out[0].now == 75'000);
  CHECK(out[1].now == 25'000);
}

TEST_CASE("who is paused gets nothing in any phase, and others get it", "[node][share]") {
  share_supply const s = {100'000, 10'000, 10'000, 0, 1'000'000};
  share_claim paused = claim(1000, 60'000);
  paused.is_paused = true;
  auto const out = grant(s, true, {paused, claim(1000, 40'000)});
  CHECK(out[0] == phases{0, 0, 0});
  CHECK(out[1].now == 110'000);
  CHECK(out[1].own == 20'000);
}

TEST_CASE("a node that owns nothing trickles only while it holds no grant", "[node][share]") {
  share_supply s = {0, 0, 0, 500, 500'000};
  CHECK(grant(s, true, {claim(1000, 0)})[0].now == 500);
  s.granted = 9'000;
  auto const held = grant(s, true, {claim(1000, 9'000)})[0];
  CHECK(held.now == 9'000);
  CHECK(held.after == 500);
}

TEST_CASE("alone, limits that span nodes shrink to the node's part", "[node][share]") {
  share_supply const s = {0, 1'000, 29'000, 0, 300'000};
  std::vector<share_claim> const claims = {claim(1000, 0, 100'000), claim(1000, 0)};
  auto const asked = node::lone_supply(s, 30'000, claims);
  CHECK(asked.claims[0].limit == 10'000);
  auto const whole = node::lone_supply(s, 300'000, claims);
  CHECK(whole.claims[0].limit == 100'000);
}

TEST_CASE("orphans together stay within a limit that spans them", "[node][share]") {
  // 10 listed nodes own 3 % of the capacity each; whatever of them is orphaned, with the parent's
  // part of the limit (by its members) for the rest.
  rate const capacity = 1'000'000, limit = 50'000;
  share_supply const s = {0, 1'000, 29'000, 0, capacity};
  share_claim c = claim(1000, 0, limit);
  c.is_capped = true;
  for (unsigned orphans = 1; orphans <= 10; ++orphans) {
    rate sum = limit * (10 - orphans) / 10;
    for (unsigned i = 0; i < orphans; ++i) {
      auto const asked = node::lone_supply(s, 30'000, std::vector{c});
      rate const ceiling = asked.claims[0].limit;
      std::vector<phases> out(1);
      node::share_alone(s, 30'000, std::vector{c}, std::vector{ceiling}, out);
      sum += std::max({out[0].now, out[0].after, out[0].own});
    }
    CHECK(sum <= limit);
  }
}

TEST_CASE("when a grant is over a capped job keeps to its safe part", "[node][share]") {
  share_supply const s = {0, 10'000, 20'000, 0, 1'000'000};  // held before: nothing now
  share_claim c = claim(1000, 70'000, 80'000);
  c.is_capped = true;
  CHECK(grant(s, true, {c})[0].now == 2'400);
  share_supply const held = {90'000, 10'000, 20'000, 0, 1'000'000};
  CHECK(grant(held, true, {c})[0].now == 70'000);
  CHECK(grant(held, false, {c})[0].now == 2'400);  // taken over, and not divided yet
  CHECK(grant(held, false, {c}, {phases{60'000, 0, 0}})[0].now == 60'000);
  c.told_limit = 80'000;  // paused by a parent that has started again since
  CHECK(grant(held, false, {c})[0].now == 0);
}

TEST_CASE("a limit of nothing is nothing", "[node][share]") {
  share_supply const s = {0, 1'000, 29'000, 0, 1'000'000};
  CHECK(node::lone_supply(s, 30'000, std::vector{claim(1000, 0, 0)}).claims[0].limit == 0);
}

TEST_CASE("no phase ever has more than the node", "[node][share]") {
  std::mt19937_64 random(4711);
  auto const some = [&](rate most) { return random() % (most + 1); };
  for (int round = 0; round < 3000; ++round) {
    share_supply const s = {some(1'000'000), some(10'000), some(100'000), some(1) * some(1000),
                            2'000'000};
    std::vector<share_claim> claims(random() % 8 + 1);
    std::vector<phases> before(claims.size()), out(claims.size());
    for (std::size_t i = 0; i < claims.size(); ++i) {
      rate const limit = random() % 3 == 0 ? some(500'000) : policies::unbounded;
      claims[i] = claim(static_cast<std::uint32_t>(some(5000)), some(600'000), limit);
      claims[i].is_capped = random() % 2 == 0;
      claims[i].is_paused = random() % 8 == 0;
      before[i].now = some(600'000);
    }
    bool const split = random() % 4 != 0;
    node::share_grant(s, split, claims, before, out);
    auto const sum = sum_of(out);
    rate const usable = s.granted + s.floor + (s.granted == 0 ? s.trickle : 0);
    REQUIRE(sum.now <= usable);
    REQUIRE(sum.after <= s.floor + s.trickle);
    REQUIRE(sum.own <= s.floor + s.trickle + s.escrow);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      REQUIRE(out[i].now <= claims[i].policy.limit);
      if (claims[i].is_paused) REQUIRE(out[i] == phases{});
      if (claims[i].is_capped && split) REQUIRE(out[i].now <= claims[i].granted);
    }
  }
}

TEST_CASE("what falls is written before what rises", "[node][share]") {
  // Two jobs swap shares; no moment between two writes may add up to more than before or after.
  auto const a = std::make_unique<abi::segment>(), b = std::make_unique<abi::segment>();
  auto const begin = node::settings_of(node::unit_kind::ops, {}, {});
  for (auto* s : {a.get(), b.get()}) core::init(s->bucket[0], begin, 1000);
  phases pa, pb;
  auto const ops = node::unit_kind::ops;
  auto const of_a = segment::writer_of(*a), of_b = segment::writer_of(*b);
  auto const write_curves = [](std::span<node::curve_change> changes, auto const& t, int now_ns) {
    node::write_falling(changes, t, now_ns);
    node::write_wanted(changes, t, now_ns);
  };
  std::vector<node::curve_change> first = {{of_a, 0, ops, &pa, {60'000, 600, 6'000}},
                                           {of_b, 0, ops, &pb, {40'000, 400, 4'000}}};
  node::phase_times const times = {5'000'000'000, 6'000'000'000, false};
  write_curves(first, times, 2000);
  std::vector<node::curve_change> swap = {{of_a, 0, ops, &pa, {40'000, 400, 4'000}},
                                          {of_b, 0, ops, &pb, {60'000, 600, 6'000}}};
  std::uint32_t const gen_a = a->bucket[0].gen.load(), gen_b = b->bucket[0].gen.load();
  write_curves(swap, times, 3000);
  CHECK(pa == phases{40'000, 400, 4'000});
  CHECK(pb == phases{60'000, 600, 6'000});
  CHECK(a->bucket[0].gen.load() == gen_a + 2);  // lowered before all others, and in its turn
  CHECK(b->bucket[0].gen.load() == gen_b + 1);  // raised once
  auto const set = core::current(b->bucket[0]);
  CHECK(node::rate_of_q40(ops, set.rate_q40) == Approx(60'000).epsilon(0.001));
  CHECK(set.lease_end_ns == times.lease_end_ns);
  CHECK(set.own_at_ns == times.own_at_ns);
  CHECK(node::rate_of_q40(ops, set.own_rate_q40) == Approx(6'000).epsilon(0.001));
}
