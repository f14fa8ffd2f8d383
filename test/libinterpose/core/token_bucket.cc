// SPDX-License-Identifier: Apache-2.0
// The token bucket step by step, in a clock of the test's own: what each call promises, the ends of
// every range, and what the words may hold after a kill or after somebody scribbled over them.
#include <catch2/catch.hpp>
#include <climits>
#include <cstring>
#include <memory>
#include <random>

#include "bucket_fixture.h"
#include "bucket_random.h"

using namespace bucket_test;

TEST_CASE("rates out of range are refused", "[bucket]") {
  std::uint64_t rate = 77;
  CHECK_FALSE(make_rate(1, 0, rate));
  CHECK_FALSE(make_rate(std::uint64_t{1} << 24, 1, rate));
  CHECK_FALSE(make_rate(1, std::uint64_t{1} << 42, rate));
  CHECK(rate == 77);
  CHECK(make_rate((std::uint64_t{1} << 24) - 1, 1, rate));
  CHECK(rate == ((std::uint64_t{1} << 24) - 1) << 40);
  CHECK(make_rate(0, 1, rate));
  CHECK(rate == 0);
  CHECK(make_rate(op_units, 86'400'000'000'000, rate));
  CHECK(double(rate) / (double(op_units) * (1ull << 40) / 86'400e9) == Approx(1).epsilon(1e-7));
}

TEST_CASE("tickets pass at their exact times, in order", "[bucket]") {
  fixture f(exact_settings(ops_per_second(1000), op_units));
  ticket t[5];
  REQUIRE(f.take(op_units, t[0]));
  for (int i = 1; i < 5; ++i) REQUIRE_FALSE(f.take(op_units, t[i]));
  for (int i = 1; i < 5; ++i) {
    CHECK(due_ns(f.b, t[i], f.now) == Approx(double(ms)).margin(2));
    CHECK(f.pass_time(t[i]) == Approx(double(start_ns + i * ms)).margin(2 * i));
  }
  CHECK(served_units(f.b, f.now + ms) == Approx(5.0 * op_units).margin(1));
}

TEST_CASE("idle time is worth the cap at most", "[bucket]") {
  bool const leasing = GENERATE(false, true);
  fixture f(exact_settings(ops_per_second(1000), 40 * op_units));
  f.b.leasing = leasing;
  f.now += 3600 * std::int64_t{1'000'000'000};
  int const burst = f.burst(op_units, 1000);
  CHECK(burst <= 41);
  CHECK(burst >= 20);
  CHECK(served_units(f.b, f.now) <= 41 * op_units);
}

TEST_CASE("a thread that stood still takes one place from before an idle time", "[bucket]") {
  int const late = GENERATE(1, 3);
  fixture f(exact_settings(ops_per_second(1000), 40 * op_units));
  f.now += 100'000 * ms;
  ticket t[3];
  curve c;
  REQUIRE(read_curve(f.b, c));
  std::uint64_t const then = c.at(f.now), old_floor = floor_of(c, then, false);
  for (int i = 0; i < late; ++i) REQUIRE_FALSE(book(f.b, op_units, t[i]));
  f.now += 100'000 * ms;  // they have looked, and have not booked
  std::uint64_t const floor = floor_of(c, c.at(f.now), false);
  int passed = 0;
  for (int i = 0; i < late; ++i) {
    rebook(f.b, t[i], old_floor, then);
    t[i].first = false;
    CHECK(distance(floor, t[i].start) > 0);
    passed += decide(f.b, t[i], f.now, 0).what == decision::pass;
  }
  CHECK(passed == late);
  // The others find all that idle time is worth, 40 requests and one that overdraws.
  CHECK(passed + f.burst(op_units, 1000) == 41 + late);
}

TEST_CASE("a request that costs more than idle time is worth does not wait for itself",
          "[bucket]") {
  fixture f(exact_settings(ops_per_second(100), 5 * op_units));
  for (int i = 0; i < 40; ++i) {
    f.now += 250 * ms;  // 25 units come, and 20 are asked for
    ticket t;
    CHECK(f.take(20 * op_units, t));
  }
  CHECK(served_units(f.b, f.now) == Approx(800.0 * op_units).epsilon(0.05));
}

TEST_CASE("threads that leave idleness together share one cap", "[bucket]") {
  fixture f(exact_settings(ops_per_second(1000), 40 * op_units));
  f.now += 100'000 * ms;
  ticket t[100];
  int passed = 0;
  for (ticket& each : t) REQUIRE_FALSE(book(f.b, op_units, each));
  for (ticket& each : t) passed += decide(f.b, each, f.now, 0).what == decision::pass;
  CHECK(passed <= 41);
  CHECK(passed >= 20);
}

TEST_CASE("a sleeper that was stopped for long keeps its ticket", "[bucket]") {
  fixture f(exact_settings(ops_per_second(1000), op_units));
  f.burst(op_units, 1);
  ticket t;
  REQUIRE_FALSE(f.take(op_units, t));
  std::uint64_t const booked = f.b.booked;
  f.now += 3'600'000 * ms;
  CHECK(decide(f.b, t, f.now, 0).what == decision::pass);
  CHECK(f.b.booked == booked);
}

TEST_CASE("a clock before the curve's start pays nothing", "[bucket]") {
  fixture f(exact_settings(ops_per_second(1000), op_units), 12345);
  curve c;
  REQUIRE(read_curve(f.b, c));
  CHECK(c.at(start_ns - 1) == 12345);
  CHECK(c.at(INT64_MIN) == 12345);
  f.burst(op_units, 1);
  f.now -= 1000 * ms;
  ticket t;
  CHECK_FALSE(f.take(op_units, t));
}

TEST_CASE("a larger cap does not revive forgotten idle time", "[bucket]") {
  fixture f(default_settings(ops_per_second(100), op_units));
  f.now += 100'000 * ms;
  set_curve(f.b, default_settings(ops_per_second(10'000), op_units), f.now);
  CHECK(f.burst(op_units, 1000) <= 10);
}

TEST_CASE("a bucket of one operation still lets one pass", "[bucket]") {
  fixture f(default_settings(ops_per_second(1), op_units));
  f.now += 60'000 * ms;
  CHECK(f.burst(op_units, 10) == 1);
}

TEST_CASE("the debt allowance passes what is nearly due", "[bucket]") {
  fixture f(default_settings(ops_per_second(10'100), op_units));  // 99 us apart, 200 us allowed
  CHECK(f.burst(op_units, 10) == 3);
}

TEST_CASE("rate zero waits in bounded slices and resumes on the curve", "[bucket]") {
  fixture f(exact_settings(0, op_units));
  ticket t[3];
  for (ticket& each : t) REQUIRE_FALSE(f.take(op_units, each));  // not even the first
  for (int i = 0; i < 5; ++i) {
    decision d = decide(f.b, t[i % 2], f.now, 50'000);
    REQUIRE(d.what == decision::wait);
    CHECK(d.deadline_ns - f.now <= long_slice_ns);
    CHECK(d.deadline_ns - f.now >= short_slice_ns);
    f.now = d.deadline_ns - 1;
  }
  CHECK(due_ns(f.b, t[0], f.now) == INT64_MAX);
  CHECK(due_ns(f.b, t[1], f.now) == INT64_MAX);
  std::uint32_t mask = set_curve(f.b, exact_settings(ops_per_second(100), op_units), f.now);
  CHECK((mask & decide(f.b, t[1], f.now, 0).mask) != 0);
  std::int64_t const resumed = f.now;
  CHECK(f.pass_time(t[0]) == resumed);
  CHECK(f.pass_time(t[1]) - resumed == Approx(10.0 * ms).margin(2));
  CHECK(f.pass_time(t[2]) - resumed == Approx(20.0 * ms).margin(2));
}

TEST_CASE("a pause bites at once and idle time before it does not come back", "[bucket]") {
  fixture f(default_settings(ops_per_second(100'000), op_units));
  ticket t;
  f.now += 1000 * ms;
  REQUIRE(f.take(op_units, t));
  REQUIRE(f.take(op_units, t));
  set_curve(f.b, default_settings(0, op_units), f.now);
  CHECK(f.burst(op_units, 1000) == 0);
  f.now += 5000 * ms;
  set_curve(f.b, default_settings(ops_per_second(100'000), op_units), f.now);
  CHECK(f.burst(op_units, 10'000) <= 22);  // the debt allowance, 20, and rounding
}

TEST_CASE("a lower rate needs no wake, a higher one wakes only with sleepers", "[bucket]") {
  fixture f(exact_settings(ops_per_second(100), op_units));
  std::uint32_t const seq = f.b.seq;
  CHECK(set_curve(f.b, exact_settings(ops_per_second(1000), op_units), f.now) == 0);
  ticket t;
  f.burst(op_units, 5);
  REQUIRE_FALSE(f.take(op_units, t));
  CHECK(set_curve(f.b, exact_settings(ops_per_second(10), op_units), f.now) == 0);
  CHECK(f.b.seq == seq);
  decision d = decide(f.b, t, f.now, 0);
  CHECK((set_curve(f.b, exact_settings(ops_per_second(1000), op_units), f.now) & d.mask) != 0);
  CHECK(f.b.seq == seq + 1);
}

TEST_CASE("a large request goes in quanta of time", "[bucket]") {
  std::uint64_t rate = 0;
  REQUIRE(make_rate(100'000'000, 1'000'000'000, rate));
  fixture f(default_settings(rate));
  CHECK(quantum_units(f.b) == Approx(200'000).margin(1));
  std::uint64_t left = 4 << 20;
  int pieces = 0;
  while (left != 0) {
    left -= next_piece(f.b, left);
    ++pieces;
  }
  CHECK(pieces == 21);
  set_curve(f.b, default_settings(0), f.now);
  CHECK(next_piece(f.b, 100) == 1);
  CHECK(next_piece(f.b, 2 * op_units, op_units) == op_units);
}

TEST_CASE("a debt is charged to whoever comes next", "[bucket]") {
  fixture f(exact_settings(ops_per_second(1000), op_units));
  ticket t;
  REQUIRE(f.take(op_units, t));
  book_debt(f.b, 9 * op_units);
  REQUIRE_FALSE(f.take(op_units, t));
  CHECK(f.pass_time(t) - start_ns == Approx(10.0 * ms).margin(10));
}

TEST_CASE("a refund brings the waiters forward and wakes them", "[bucket]") {
  fixture f(exact_settings(ops_per_second(100), op_units));
  ticket big;
  ticket t;
  REQUIRE(f.take(50 * op_units, big));
  REQUIRE_FALSE(f.take(op_units, t));
  std::uint32_t const seq = f.b.seq;
  CHECK(refund(f.b, 49 * op_units, f.now));
  CHECK(f.b.seq == seq + 1);
  CHECK(f.pass_time(t) - start_ns == Approx(10.0 * ms).margin(10));
  CHECK(served_units(f.b, f.now + 10 * ms) == Approx(2.0 * op_units).margin(1));
}

TEST_CASE("a ticket without a holder is written off as far as it was not paid", "[bucket]") {
  std::uint64_t const rate = ops_per_second(10);
  fixture f(exact_settings(rate, op_units));
  ticket gone, next;
  while (f.take(op_units, gone)) continue;  // the one that waits
  REQUIRE_FALSE(f.take(op_units, next));
  auto const left = [&](std::int64_t after_ns) {
    return write_off(f.b, gone.start, gone.cost, f.now + after_ns);
  };
  std::int64_t const wait_ns = due_ns(f.b, gone, f.now);
  std::uint64_t const served = served_units(f.b, f.now + wait_ns + 1000 * ms);
  CHECK(left(0) == op_units);
  CHECK(left(wait_ns) == op_units);
  std::uint64_t const half = left(wait_ns + 50 * ms);
  CHECK(half <= op_units / 2);
  CHECK(half > op_units / 2 - 100);
  CHECK(left(wait_ns + 200 * ms) == 0);
  // What was paid of it, and what was not, served nobody.
  CHECK(served_units(f.b, f.now + wait_ns + 1000 * ms) == served - (op_units - half) - op_units);

  SECTION("those after it move forward by what it keeps from them") {
    std::int64_t const before_ns = due_ns(f.b, next, f.now);
    refund(f.b, left(0), f.now);
    CHECK(due_ns(f.b, next, f.now) == before_ns - 100 * ms);
  }
  SECTION("what nobody can have booked is not given back") {
    CHECK(write_off(f.b, next.start, 2 * op_units, f.now) == 0);
    CHECK(write_off(f.b, next.start + (std::uint64_t{1} << 40), op_units, f.now) == 0);
    CHECK(write_off(f.b, next.start - ~std::uint64_t{0} / 2, ~std::uint64_t{0} / 2, f.now) == 0);
  }
}

TEST_CASE("one of all looks for those who are gone, now and then", "[bucket]") {
  fixture f(exact_settings(ops_per_second(10), op_units));
  CHECK(may_look(f.b, f.now));
  CHECK_FALSE(may_look(f.b, f.now));
  CHECK_FALSE(may_look(f.b, f.now + 99 * ms));
  CHECK(may_look(f.b, f.now + 100 * ms));
  for (std::int64_t const garbage : {INT64_MAX, INT64_MIN, std::int64_t{-1}}) {
    f.b.looked_ns.store(garbage);
    CHECK(may_look(f.b, f.now));
  }
}

TEST_CASE("small refunds wake nobody until they add up", "[bucket]") {
  curve_settings s = default_settings(ops_per_second(100'000), op_units);  // debt: 20 operations
  fixture f(s);
  ticket big;
  ticket t;
  REQUIRE(f.take(10'000 * op_units, big));
  REQUIRE_FALSE(f.take(op_units, t));
  int wakes = 0;
  for (int i = 0; i < 100; ++i) wakes += refund(f.b, op_units, f.now += 20'000);
  CHECK(wakes >= 3);
  CHECK(wakes <= 5);
  wakes = 0;
  for (int i = 0; i < 100; ++i) wakes += refund(f.b, 50 * op_units, f.now += 20'000);
  CHECK(wakes >= 9);
  CHECK(wakes <= 11);  // once per 200 us
  f.now += 2 * long_slice_ns;
  CHECK_FALSE(refund(f.b, 1000 * op_units, f.now));  // nobody sleeps any more
}

TEST_CASE("a killed waiter costs its ticket and no more", "[bucket]") {
  fixture f(exact_settings(ops_per_second(100), op_units));
  ticket t;
  REQUIRE(f.take(op_units, t));
  for (int i = 0; i < 50; ++i) {
    ticket dead;
    REQUIRE_FALSE(f.take(op_units, dead));
  }
  REQUIRE_FALSE(f.take(op_units, t));
  CHECK(f.pass_time(t) - start_ns == Approx(510.0 * ms).margin(50));
  std::int64_t before = f.now;
  REQUIRE_FALSE(f.take(op_units, t));
  CHECK(f.pass_time(t) - before == Approx(10.0 * ms).margin(2));
}

TEST_CASE("a writer killed before it publishes leaves the old curve", "[bucket]") {
  fixture f(exact_settings(ops_per_second(100), op_units));
  for (int i = 0; i < 3; ++i) set_curve(f.b, current(f.b), f.now += ms);
  curve before;
  REQUIRE(read_curve(f.b, before));
  std::memset(static_cast<void*>(&f.b.ring[(f.b.gen + 1) & 3]), 0xa5, sizeof(curve_slot));
  curve after;
  REQUIRE(read_curve(f.b, after));
  CHECK(before.gen == after.gen);
  CHECK(before.at(f.now + 1000 * ms) == after.at(f.now + 1000 * ms));
  ticket t;
  REQUIRE(f.take(op_units, t));
  REQUIRE_FALSE(f.take(op_units, t));
}

TEST_CASE("a sleeper is told to look again when something moved meanwhile", "[bucket]") {
  fixture f(exact_settings(ops_per_second(10), op_units));
  ticket t;
  f.burst(op_units, 1);
  REQUIRE_FALSE(f.take(op_units, t));
  decision d = decide(f.b, t, f.now, 0);
  set_curve(f.b, exact_settings(ops_per_second(20), op_units), f.now);
  CHECK(futex_word(f.b).load() != d.seq);  // so the futex refuses to sleep
  CHECK(f.b.sleep_until >= d.deadline_ns);
}

TEST_CASE("timer slack is taken off the alarm but never wakes too early to pass", "[bucket]") {
  fixture f(default_settings(ops_per_second(1000), op_units));
  ticket t;
  f.burst(op_units, 2);
  REQUIRE_FALSE(f.take(op_units, t));
  std::int64_t const plain = decide(f.b, t, f.now, 0).deadline_ns;
  CHECK(decide(f.b, t, f.now, 50'000).deadline_ns == plain - 50'000);
  CHECK(decide(f.b, t, f.now, INT64_MAX).deadline_ns == plain - default_debt_ns / 2);
  CHECK(decide(f.b, t, f.now, default_debt_ns).deadline_ns == plain - default_debt_ns / 2);
  CHECK(decide(f.b, t, f.now, INT64_MIN).deadline_ns == plain);
  f.now = plain - default_debt_ns / 2;
  CHECK(decide(f.b, t, f.now, 0).what == decision::pass);
}

TEST_CASE("leases come out of credit only and die with the curve", "[bucket]") {
  fixture f(default_settings(ops_per_second(1'000'000), op_units));  // cap 50 000
  lease l{};
  ticket t;
  f.now += 100 * ms;
  REQUIRE(f.take(op_units, t));
  REQUIRE(f.take(op_units, t));
  REQUIRE(take_leased(f.b, l, op_units, 4, t));
  CHECK(l.tokens == lease_calls * op_units);
  std::uint64_t const booked = f.b.booked;
  for (unsigned i = 0; i < lease_calls; ++i) REQUIRE(take_leased(f.b, l, op_units, 4, t));
  CHECK(f.b.booked == booked);
  REQUIRE(take_leased(f.b, l, op_units, 4, t));
  set_curve(f.b, default_settings(0, op_units), f.now);
  CHECK_FALSE((take_leased(f.b, l, op_units, 4, t) && take_leased(f.b, l, op_units, 4, t) &&
               take_leased(f.b, l, op_units, 4, t)));
  CHECK(l.tokens == 0);
}

TEST_CASE("the circle of 2^64 units is crossed without notice", "[bucket]") {
  std::uint64_t const origin = 0 - 5 * std::uint64_t{op_units} - 3;
  fixture f(exact_settings(ops_per_second(1000), op_units), origin);
  ticket t;
  REQUIRE(f.take(op_units, t));
  for (int i = 1; i < 20; ++i) {
    REQUIRE_FALSE(f.take(op_units, t));
    CHECK(f.pass_time(t) - start_ns == Approx(double(i * ms)).margin(2 * i));
  }
  CHECK(served_units(f.b, f.now + ms) == Approx(20.0 * op_units).margin(1));
}

TEST_CASE("idle beyond 2^63 units is idleness, not debt", "[bucket]") {
  std::uint64_t rate = 0;
  REQUIRE(make_rate(1'000'000'000'000, 1'000'000'000, rate));  // 1 TB/s
  fixture f(default_settings(rate));
  ticket t;
  REQUIRE(f.take(1, t));
  f.now += std::int64_t{130} * 86400 * 1'000'000'000;
  CHECK(f.take(1'000'000, t));
  CHECK(f.burst(1'000'000'000, 1000) <= 52);
  f.now += std::int64_t{3650} * 86400 * 1'000'000'000;
  CHECK(f.take(1'000'000, t));
}

TEST_CASE("any garbage in the words is survived", "[bucket]") {
  std::mt19937_64 random(4711);
  auto memory = std::make_unique<bucket>();
  bucket& b = *memory;
  for (int round = 0; round < 20'000; ++round) {
    std::uint64_t words[sizeof(bucket) / 8];
    for (auto& w : words) {
      w = random();
      if (random() % 4 == 0) w = random() % 2 ? 0 : ~std::uint64_t{0};
      if (random() % 4 == 0) w >>= random() % 64;
    }
    std::memcpy(static_cast<void*>(&b), words, sizeof b);
    std::int64_t const now = round % 3 ? std::int64_t(random() >> (random() % 64)) : start_ns;
    ticket t{random(), random(), true};
    lease l{random(), std::uint32_t(random())};
    if (round % 2) book(b, random() >> (random() % 64), t);
    for (int i = 0; i < 3; ++i) {
      decision d = decide(b, t, now, std::int64_t(random()));
      if (d.what != decision::wait) continue;
      std::int64_t const from = sane_time(now);
      REQUIRE(d.mask != 0);
      REQUIRE(d.deadline_ns - from <= long_slice_ns);
      REQUIRE(d.deadline_ns - from >= -long_slice_ns);
    }
    due_ns(b, t, now);
    take_leased(b, l, random() >> (random() % 64), std::uint32_t(random()), t);
    drop_lease(b, l);
    refund(b, random(), now);
    REQUIRE(next_piece(b, 100) >= 1);
    served_units(b, now);
    curve_settings s{random(),
                     random(),
                     std::int64_t(random()),
                     std::int64_t(random()),
                     std::int64_t(random()),
                     std::uint32_t(random()),
                     random(),
                     std::int64_t(random()),
                     random()};
    set_curve(b, s, now);
    REQUIRE(current(b).debt_ns <= long_slice_ns);
  }
}

TEST_CASE("set_curve makes a bucket of whatever it is given", "[bucket]") {
  fixture f(default_settings(ops_per_second(10), op_units));
  CHECK(plausible(f.b));
  set_curve(f.b, {~0ull, ~0ull, INT64_MAX, INT64_MIN, INT64_MIN, 7, ~0ull, INT64_MIN, ~0ull},
            f.now);
  CHECK(plausible(f.b));
}
