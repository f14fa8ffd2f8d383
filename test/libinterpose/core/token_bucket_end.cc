// SPDX-License-Identifier: Apache-2.0
// How a lease ends without anybody's help: open, at a later rate, at the holder's own; who must be
// woken when its end moves.
#include <catch2/catch.hpp>

#include "bucket_fixture.h"

using namespace bucket_test;

TEST_CASE("an open lease end lets everybody pass and leaves no debt", "[bucket]") {
  curve_settings s = exact_settings(ops_per_second(100), op_units);
  s.lease_end_ns = start_ns + 50 * ms;
  s.after_lease = 1;
  fixture f(s);
  ticket t;
  book_debt(f.b, 1000 * op_units);
  REQUIRE_FALSE(f.take(op_units, t));
  decision d = decide(f.b, t, f.now, 0);
  CHECK(d.deadline_ns == s.lease_end_ns);
  f.now = d.deadline_ns;
  CHECK(decide(f.b, t, f.now, 0).what == decision::pass_open);
  std::uint64_t const ahead = f.b.booked - f.b.returned;
  for (int i = 0; i < 10'000; ++i) {
    if (book(f.b, op_units, t)) continue;
    REQUIRE(decide(f.b, t, f.now, 0).what == decision::pass_open);
  }
  CHECK(f.b.booked - f.b.returned == ahead);
  CHECK(set_curve(f.b, exact_settings(ops_per_second(100), op_units), f.now) == 0);
  s.after_lease = 0;
  s.lease_end_ns = 1;
  set_curve(f.b, s, f.now);
  CHECK_FALSE(f.take(op_units, t));  // keep: the rate stays in force
}

TEST_CASE("an opening curve wakes everybody who sleeps", "[bucket]") {
  curve_settings s = exact_settings(ops_per_second(1), op_units);
  fixture f(s);
  ticket t;
  f.burst(op_units, 1);
  REQUIRE_FALSE(f.take(op_units, t));
  s.after_lease = 1;
  s.lease_end_ns = f.now;
  CHECK(set_curve(f.b, s, f.now) == ~0u);
  CHECK(decide(f.b, t, f.now, 0).what == decision::pass_open);
}

namespace {

// Until `end`, then a tenth, and from `own` on a hundredth.
curve_settings ending(std::uint64_t per_second, std::int64_t end, std::int64_t own) {
  curve_settings s = exact_settings(ops_per_second(per_second), op_units);
  s.lease_end_ns = end;
  s.after_rate_q40 = ops_per_second(per_second / 10);
  s.own_at_ns = own;
  s.own_rate_q40 = ops_per_second(per_second / 100);
  return s;
}

}  // namespace

TEST_CASE("a curve ends by itself, and later pays the holder's own rate", "[bucket]") {
  fixture f(ending(1000, start_ns + 10 * ms, start_ns + 50 * ms));
  ticket t[30];
  REQUIRE(f.take(op_units, t[0]));
  for (int i = 1; i < 30; ++i) REQUIRE_FALSE(f.take(op_units, t[i]));
  for (int i = 1; i < 30; ++i) {
    int const due_ms = i <= 10 ? i : i <= 14 ? 10 + (i - 10) * 10 : 50 + (i - 14) * 100;
    INFO(i);
    CHECK(due_ns(f.b, t[i], start_ns) == Approx(double(due_ms * ms)).margin(200));
    CHECK(f.pass_time(t[i]) - start_ns == Approx(double(due_ms * ms)).margin(200));
  }
}

TEST_CASE("a curve whose lease is over waits for the own rate, slice by slice", "[bucket]") {
  curve_settings s = ending(1000, start_ns + 10 * ms, start_ns + 1000 * ms);
  s.after_rate_q40 = 0;
  fixture f(s);
  f.burst(op_units, 1);
  f.now += 20 * ms;
  REQUIRE(f.burst(op_units, 5) == 0);
  ticket t;
  REQUIRE_FALSE(f.take(op_units, t));
  decision d = decide(f.b, t, f.now, 0);
  CHECK(d.deadline_ns == f.now + short_slice_ns);
  CHECK(f.pass_time(t) - start_ns == Approx(1000.0 * ms).margin(200.0 * ms));
  CHECK(served_units(f.b, start_ns + 900 * ms) <= 12 * op_units);
}

TEST_CASE("what is due in a pause passes when the next rate begins", "[bucket]") {
  curve_settings s = ending(1000, start_ns + 10 * ms, start_ns + 100 * ms);
  s.after_rate_q40 = 0;
  s.debt_ns = default_debt_ns;
  fixture f(s);
  f.now += 20 * ms;
  ticket t;
  REQUIRE_FALSE(f.take(op_units, t));
  CHECK(due_ns(f.b, t, f.now) == Approx(80.0 * ms).margin(2 * default_debt_ns));
  decision const d = decide(f.b, t, f.now, default_debt_ns);
  CHECK(set_curve(f.b, s, f.now) == 0);
  CHECK(f.pass_time(t) - start_ns == Approx(100.0 * ms).margin(2 * default_debt_ns));
  f.now = start_ns + 30 * ms;
  s.own_at_ns -= 50 * ms;
  CHECK((set_curve(f.b, s, f.now) & d.mask) != 0);
}

TEST_CASE("what is due within the debt does not reach past the end of the lease", "[bucket]") {
  curve_settings s = ending(100'000, start_ns + ms, 0);
  s.after_rate_q40 = 0;
  s.debt_ns = default_debt_ns;
  fixture f(s);
  f.burst(op_units, 10);
  f.now = start_ns + ms - 1000;
  int const most = 100 + 1 + 10;  // what the lease pays, one request that overdraws
  CHECK(f.burst(op_units, 1000) <= most);
  f.now += 3'600'000 * ms;
  CHECK(f.burst(op_units, 1000) == 0);
}

TEST_CASE("an end without a lease, or before it, changes nothing", "[bucket]") {
  fixture f(ending(1000, 0, start_ns + ms));
  ticket t;
  f.burst(op_units, 1);
  REQUIRE_FALSE(f.take(op_units, t));
  book_debt(f.b, 99 * op_units);
  REQUIRE_FALSE(f.take(op_units, t));
  CHECK(f.pass_time(t) - start_ns == Approx(101.0 * ms).margin(200));
  set_curve(f.b, ending(1000, f.now + 10 * ms, f.now + ms), f.now);
  CHECK(current(f.b).own_at_ns == f.now + 10 * ms);
}

TEST_CASE("a new curve starts where an ended one stands", "[bucket]") {
  std::int64_t const late_ms = GENERATE(5, 30, 1000);
  fixture f(ending(1000, start_ns + 10 * ms, start_ns + 50 * ms));
  f.now += late_ms * ms;
  curve before;
  curve after;
  REQUIRE(read_curve(f.b, before));
  set_curve(f.b, ending(500, f.now + 10 * ms, 0), f.now);
  REQUIRE(read_curve(f.b, after));
  CHECK(after.at(f.now) == before.at(f.now));
  CHECK(after.frac_at(f.now) == before.frac_at(f.now));
  CHECK(after.at(f.now + 20 * ms) - after.at(f.now) == Approx(5.5 * op_units).margin(2));
}

TEST_CASE("a lease that is prolonged wakes those who counted on its end", "[bucket]") {
  curve_settings s = ending(1000, start_ns + 10 * ms, 0);
  s.after_rate_q40 = 0;
  fixture f(s);
  ticket t;
  book_debt(f.b, 20 * op_units);
  REQUIRE_FALSE(f.take(op_units, t));
  decision const d = decide(f.b, t, f.now, 0);
  CHECK(set_curve(f.b, s, f.now) == 0);
  s.lease_end_ns += 100 * ms;
  CHECK((set_curve(f.b, s, f.now) & d.mask) != 0);
  decide(f.b, t, f.now, 0);
  s.lease_end_ns -= 50 * ms;
  CHECK(set_curve(f.b, s, f.now) == 0);
}
