// SPDX-License-Identifier: Apache-2.0
// What a node reports of a stream: right for a healthy segment, bounded for a scribbled one.
#include "node/demand_meter.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "core/token_bucket.h"
#include "core/would_wait.h"
#include "node/curves.h"

using namespace sluice;
using node::unit_kind;

namespace {

constexpr std::int64_t ms = 1'000'000, start_ns = 1'000'000'000'000;

/// A segment of zeros with one bucket of `rate` milli-operations per second.
struct world {
  std::unique_ptr<abi::segment> s = std::make_unique<abi::segment>();
  node::demand_meter m;
  std::int64_t now_ns = start_ns;
  node::rate rate;
  explicit world(node::rate r) : rate(r) {
    core::init(s->bucket[0], node::settings_of(unit_kind::ops, {r, 0, 0}, {}), now_ns);
    m.start(node::look(*s, 0, node::look_depth::threads, now_ns), node::waits_so_far(*s, 0),
            now_ns);
  }
  void book(unsigned ops) { s->bucket[0].booked += ops * core::op_units; }
  bool tick() {
    now_ns += 10 * ms;
    return m.tick(node::look(*s, 0, node::look_depth::threads, now_ns), rate, now_ns);
  }
  node::figures cycle(unsigned ops_per_tick) {
    for (int i = 0; i < 10; ++i) {
      book(ops_per_tick);
      tick();
    }
    return m.take(unit_kind::ops, node::waits_so_far(*s, 0), now_ns);
  }
};

}  // namespace

TEST_CASE("what passes without waiting is counted as served", "[node][demand]") {
  world w(1'000'000);  // 1000 operations a second
  w.cycle(5);
  auto const f = w.cycle(5);
  CHECK(f.served == Approx(500'000).epsilon(0.01));
  CHECK(f.blocked_ppm == 0);
  CHECK(f.waiting == 0);
}

TEST_CASE("who waits is seen, and what is served meanwhile is the curve", "[node][demand]") {
  world w(1'000'000);
  w.s->head.shards_used = 2;
  w.s->owned[1].waiting.channel = 1;
  w.cycle(50);
  auto const f = w.cycle(50);
  CHECK(f.served == Approx(1'000'000).epsilon(0.01));
  CHECK(f.waiters == 1);
  CHECK(f.blocked_ppm == 1'000'000);
  CHECK(f.waiting > 100'000);
}

TEST_CASE("a large request that overdrew blocks nobody", "[node][demand]") {
  world w(1'000'000);
  w.book(2000);
  w.tick();
  CHECK(!w.m.is_blocked());
  w.s->head.shards_used = 1;
  w.s->owned[0].waiting.channel = 1;
  CHECK(w.tick());   // the edge
  CHECK(!w.tick());  // only once
}

TEST_CASE("that a stream which waited has fallen quiet is news, once", "[node][demand]") {
  world w(1'000'000);
  w.s->head.shards_used = 1;
  w.s->owned[0].waiting.channel = 1;
  w.cycle(50);
  w.s->owned[0].waiting.channel = 0;  // killed while it waited: what it booked is still served
  while (!w.tick()) REQUIRE(w.now_ns < start_ns + 2000 * ms);
  std::int64_t const told_ns = w.now_ns;
  CHECK(core::served_units(w.s->bucket[0], told_ns) ==
        core::served_units(w.s->bucket[0], told_ns - node::demand_meter::quiet_ns));
  for (int i = 0; i < 30; ++i) CHECK(!w.tick());
  w.cycle(0);
  w.cycle(0);
  w.book(1);  // works, and does not wait: its end is no news
  for (int i = 0; i < 10; ++i) CHECK(!w.tick());
}

TEST_CASE("waits shorter than a look show in the histogram", "[node][demand]") {
  world w(1'000'000);
  w.cycle(1);
  w.s->channel[0].waits.add(50'000);
  CHECK(w.cycle(1).blocked_ppm == 100'000);
  CHECK(w.cycle(1).blocked_ppm == 0);
}

TEST_CASE("more given back than taken is nothing served", "[node][demand]") {
  world w(1'000'000);
  w.cycle(5);
  w.s->bucket[0].returned += 1000 * core::op_units;
  CHECK(w.cycle(0).served == 0);
}

TEST_CASE("garbage in the segment is reported within bounds", "[node][demand]") {
  std::mt19937_64 random(20240607);
  world w(1'000'000);
  // 30 ms of the curve and its burst, plus a large request, over 10 ms at the shortest.
  node::rate const most = 100 * (50'000 + 4096 * 1000ull);
  for (int round = 0; round < 2000; ++round) {
    auto* const words = reinterpret_cast<std::uint64_t*>(&w.s->bucket[0]);
    for (std::size_t i = 0; i < sizeof(core::bucket) / 8; ++i)
      if (random() % 3 == 0) words[i] = random() >> (random() % 64);
    w.s->head.shards_used = static_cast<std::uint32_t>(random());
    w.s->owned[random() % abi::owned_shards].waiting.channel = random() % 2 ? 1 : ~0u;
    int const ticks = static_cast<int>(random() % 3) + 1;
    for (int i = 0; i < ticks; ++i) w.tick();
    auto const f = w.m.take(unit_kind::ops, random(), w.now_ns);
    REQUIRE(f.served <= most);
    REQUIRE(f.blocked_ppm <= 1'000'000);
    REQUIRE(f.waiters <= abi::owned_shards);
    REQUIRE(f.waiting <= (std::uint64_t{1} << 50));
  }
}

TEST_CASE("a lie of many cycles is believed as one large request beyond the curve",
          "[node][demand]") {
  world w(1'000'000);  // 1000 operations a second, of which its burst is 20
  std::uint64_t sum = 0;
  auto const lie = [&](int cycles) {
    for (int i = 0; i < cycles; ++i) {
      w.s->bucket[0].skipped -= 5000 * core::op_units;
      sum += w.cycle(0).served_units;
    }
    return sum / core::op_units;
  };
  CHECK(lie(1) <= 100 + 20 + 4096);
  CHECK(lie(99) <= 100 * 100 + 20 + 4096);
  CHECK(lie(1) >= 100 * 100 + 20 + 4096);  // what the curve pays is believed
  for (int i = 0; i < 10; ++i) w.cycle(0);
  CHECK(lie(1) <= 112 * 100 + 20 + 4096);  // it paid 1000 of the large request off
}

TEST_CASE("a large request is served at once, again and again as it is paid off",
          "[node][demand]") {
  node::demand_meter m;
  std::uint64_t told = 0, sum = 0;
  std::int64_t now_ns = 1;
  m.start({}, 0, now_ns);
  for (int i = 0; i < 100; ++i) {  // one in four seconds, of 1000 operations a second
    if (i % 40 == 0) told += 4000 * core::op_units;
    node::sample s;
    s.served_units = told;
    now_ns += 100 * ms;
    m.tick(s, 1'000'000, now_ns);
    sum += m.take(unit_kind::ops, 0, now_ns).served_units;
    REQUIRE(sum == told);
  }
}

TEST_CASE("where a rate falls, what it paid since the last look is believed", "[node][demand]") {
  node::demand_meter m;
  std::int64_t now_ns = 1;
  m.start({}, 0, now_ns);
  node::sample s;
  auto const pass = [&](std::uint64_t ops, node::rate paying, std::int64_t span_ns) {
    s.served_units += ops * core::op_units;
    now_ns += span_ns;
    m.tick(s, paying, now_ns);
  };
  auto const take = [&] { return m.take(unit_kind::ops, 0, now_ns).served_units / core::op_units; };
  pass(1'000'000, 10'000'000'000, 100 * ms);  // ten million a second
  CHECK(take() == 1'000'000);
  pass(90'000, 1'000'000, 10 * ms);
  CHECK(take() == 90'000);
}

TEST_CASE("where no curve bounds it, a stream is served what a machine can do", "[node][demand]") {
  for (unit_kind const unit : {unit_kind::ops, unit_kind::bytes, unit_kind::vops}) {
    node::demand_meter m;
    m.start({}, 0, 1);
    node::sample made_up;
    made_up.served_units = std::uint64_t{1} << 62;
    m.tick(made_up, node::unlimited(unit), 1 + 1'000'000'000);
    auto const f = m.take(unit, 0, 1 + 1'000'000'000);
    CHECK(f.served > 0);
    CHECK(node::tokens(f.served) <
          3.0 * std::thread::hardware_concurrency() * (unit == unit_kind::bytes ? 50e9 : 20e6));
  }
}

TEST_CASE("rates survive the way to the bucket and back", "[node][demand]") {
  for (node::rate r : {1ull, 999ull, 1000ull, 123'456'789ull, 220'000'000ull}) {
    for (unit_kind u : {unit_kind::ops, unit_kind::bytes}) {
      node::rate const back = node::rate_of_q40(u, node::q40_of(u, r));
      CHECK(back <= r);
      CHECK(static_cast<double>(back) >= 0.99 * static_cast<double>(r) - 1);
    }
  }
  CHECK(node::q40_of(unit_kind::ops, ~0ull) ==
        node::q40_of(unit_kind::ops, node::unlimited(unit_kind::ops)));
  CHECK(node::rate_over(~0ull, 1) == core::max_cap_units);
}

TEST_CASE("tally: amounts are bounded, whatever the memory says", "[node][demand]") {
  node::tally t;
  t.start({5, 5, 0, 10});
  node::figures f;
  f.served_units = 3 * core::op_units;
  t.add(f, 1000);
  t.look(unit_kind::ops, {7, 7, 1, 2'000'000'010}, false, 1);
  CHECK(t.done().served == 2);
  CHECK(t.done().delayed == 1);
  CHECK(t.done().waited_ns == 2'000'000'000);
  t.look(unit_kind::ops, {~0ull, ~0ull, ~0ull, ~0ull}, false, 3);
  CHECK(t.done().served == 3);
  CHECK(t.done().delayed == 1);
  CHECK(t.done().waited_ns == 2'000'000'000 + 3 * 3600ull * 1'000'000'000);
  t.look(unit_kind::ops, {}, true, 3);
  CHECK(t.done().served == 3);
}

TEST_CASE("tally: what was paid in advance and given back was not served", "[node][demand]") {
  node::tally t;
  t.start({});
  node::figures f;
  f.served_units = 12 * core::op_units;  // of which threads hold eight
  t.add(f, 100 * ms);
  t.look(unit_kind::ops, {4, 4, 0, 0}, false, 1);
  CHECK(t.done().served == 4);
  // The rate is lowered: the eight are given back, and a request waits in its second half.
  f.served_units = 3 * core::op_units;
  t.add(f, 100 * ms);
  t.look(unit_kind::ops, {5, 5, 0, 0}, true, 1);
  CHECK(t.done().served == 7);
  t.look(unit_kind::ops, {8, 8, 1, 0}, false, 1);
  CHECK(t.done().served == 8);
}

TEST_CASE("what is given back is taken off what is taken after it", "[node][demand]") {
  node::demand_meter m;
  std::int64_t now_ns = 1;
  auto const take = [&](std::uint64_t served_units) {
    node::sample s;
    s.served_units = served_units;
    now_ns += 100 * ms;
    m.tick(s, 1'000'000, now_ns);
    return m.take(unit_kind::ops, 0, now_ns).served_units / core::op_units;
  };
  m.start({}, 0, now_ns);
  CHECK(take(50 * core::op_units) == 50);
  CHECK(take(30 * core::op_units) == 0);
  CHECK(take(60 * core::op_units) == 10);
  CHECK(take(~std::uint64_t{0} / 2) > 0);  // garbage
  CHECK(take(70 * core::op_units) == 0);
  CHECK(take(75 * core::op_units) == 5);
}

TEST_CASE("a watched job was served what it counted, and wants more where it would wait",
          "[node][demand]") {
  world w(1'000'000);  // 1000 operations a second
  core::curve c;
  REQUIRE(core::read_curve(w.s->bucket[0], c));
  w.s->head.shards_used = 1;
  w.m.start(node::look_watched(*w.s, 0, w.now_ns), node::waits_so_far(*w.s, 0), w.now_ns);
  auto const cycle = [&](unsigned ops_per_tick) {
    for (int i = 0; i < 10; ++i) {
      w.now_ns += 10 * ms;
      abi::channel_state& state = w.s->channel[0];
      for (unsigned k = 0; k < ops_per_tick; ++k)
        if (core::spill(state.full_until_ns, c, core::op_units, w.now_ns).is_delayed)
          ++state.spared_calls;
      w.s->owned[0].channel[0].calls += ops_per_tick;
      w.m.tick(node::look_watched(*w.s, 0, w.now_ns), node::unlimited(unit_kind::ops), w.now_ns);
    }
    return w.m.take(unit_kind::ops, node::waits_so_far(*w.s, 0), w.now_ns);
  };
  auto f = cycle(5);
  CHECK(f.served == Approx(500'000));
  CHECK(f.blocked_ppm == 0);
  f = cycle(500);
  CHECK(f.served == Approx(50'000'000));  // nothing held it
  CHECK(f.blocked_ppm == 1'000'000);
  CHECK(f.waiters == 1);
  CHECK(f.waiting > 0);
  cycle(0);
  CHECK(cycle(0).blocked_ppm == 0);
}

TEST_CASE("what goes beyond a share that holds nothing adds up", "[node][demand]") {
  node::tally sum;
  sum.start({});
  node::figures f;
  f.served_units = 300 * core::op_units;
  sum.add(f, 100 * ms, 2'000'000);  // 2000 a second
  sum.add(f, 50 * ms, 0);
  unsigned const told = GENERATE(0, 150, 600);  // the rest was given back
  sum.look(unit_kind::ops, {.calls = told, .amount = told}, false, 1);
  CHECK(sum.done().beyond == Approx(std::min(told, 200u)));
}
