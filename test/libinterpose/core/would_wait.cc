// SPDX-License-Identifier: Apache-2.0
// What a limit that only counts says it would have done is what it does: compared with a caller who
// really waits each time.
#include "libinterpose/core/would_wait.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace sluice::core;

namespace {

constexpr std::int64_t second = 1'000'000'000, start = 1'000 * second;

curve at_rate(std::uint64_t per_s, std::uint64_t cap_units) {
  curve c = {};
  c.set.rate_q40 = static_cast<std::uint64_t>((u128(per_s) << 40) / second);
  c.set.cap_units = cap_units;
  return c;
}

/// One caller who waits before each call; the time that the calls come at is then later.
struct waiting_caller {
  std::int64_t full_until_ns = 0, later_ns = 0;
  std::int64_t wait(curve const& c, std::uint64_t units, std::int64_t at_ns) {
    std::int64_t now = at_ns + later_ns;
    std::int64_t const room = time_for(c.set.cap_units, c.set.rate_q40);
    std::int64_t const wait_ns = std::max<std::int64_t>(0, full_until_ns - now - room);
    later_ns += wait_ns;
    now += wait_ns;
    full_until_ns = std::max(full_until_ns, now) + time_for(units, c.set.rate_q40);
    return wait_ns;
  }
};

}  // namespace

TEST_CASE("a burst would have taken what the rate takes for it", "[would_wait]") {
  curve const c = at_rate(100, 10);
  std::atomic<std::int64_t> bucket = 0;
  std::uint64_t sum = 0, delayed = 0;
  for (int i = 0; i < 1000; ++i) {
    spilled const s = spill(bucket, c, 1, start);
    sum += s.wait_ns;
    delayed += s.is_delayed;
  }
  CHECK(delayed == 1000 - 11);  // the bucket, and one that overdraws
  CHECK(double(sum) == Approx(9.89 * second).epsilon(1e-5));
}

TEST_CASE("each wait is that of a caller who waits", "[would_wait]") {
  std::mt19937_64 random(7);
  for (int run = 0; run < 200; ++run) {
    curve const c = at_rate(1 + random() % 100'000, 1 + random() % 1000);
    std::atomic<std::int64_t> bucket = 0;
    waiting_caller caller;
    std::int64_t now = start;
    for (int i = 0; i < 500; ++i) {
      now += static_cast<std::int64_t>(random() % (random() % 8 == 0 ? second : second / 10'000));
      std::uint64_t const units = 1 + random() % 50;
      spilled const s = spill(bucket, c, units, now);
      REQUIRE(static_cast<std::int64_t>(s.wait_ns) == caller.wait(c, units, now));
      REQUIRE(s.is_delayed == (s.wait_ns != 0));
    }
  }
}

TEST_CASE("who waits for nothing makes the next ones wait", "[would_wait]") {
  std::mt19937_64 random(8);
  curve const c = at_rate(1000, 10);
  std::atomic<std::int64_t> bucket = 0;
  waiting_caller caller;
  std::int64_t now = start;
  for (int i = 0; i < 500; ++i) {
    now += static_cast<std::int64_t>(random() % 1'000'000);
    std::int64_t const wait_ns = caller.wait(c, 1, now);
    REQUIRE(static_cast<std::int64_t>(spill(bucket, c, 1, now).wait_ns) == wait_ns);
    CHECK(spill(bucket, c, 2, now, false).wait_ns == 0);
    std::int64_t const then = now + caller.later_ns;
    caller.full_until_ns = std::max(caller.full_until_ns, then) + time_for(2, c.set.rate_q40);
  }
  CHECK(caller.later_ns > second);  // 1500 units in half a second
}

TEST_CASE("pauses, open curves and nonsense", "[would_wait]") {
  std::atomic<std::int64_t> bucket = 0;
  CHECK(spill(bucket, at_rate(0, 10), 1, start).is_delayed);
  CHECK(spill(bucket, at_rate(0, 10), 1, start).wait_ns == 0);
  CHECK(bucket == 0);
  curve open = at_rate(1, 1);
  open.set.lease_end_ns = start - 1;
  open.set.after_lease = 1;
  CHECK_FALSE(spill(bucket, open, 1'000, start).is_delayed);
  for (std::int64_t garbage : {INT64_MIN / 4, INT64_MAX / 4}) {
    bucket = garbage;
    spill(bucket, at_rate(10, 10), 1, start);  // no more than a wrong number
  }
  CHECK(time_for(~0ull, 1) == std::int64_t{30} * 86'400 * second);
}

TEST_CASE("what was not moved is given back", "[would_wait]") {
  curve const c = at_rate(1'000'000, 1'000'000);
  std::atomic<std::int64_t> bucket = 0;
  for (int i = 0; i < 100; ++i) {
    CHECK_FALSE(spill(bucket, c, 900'000, start).is_delayed);
    pour_back(bucket, c, 900'000, start);
  }
}
