// SPDX-License-Identifier: Apache-2.0
// A bucket, a clock of the test's own, and a thread that sleeps as it is told.
#pragma once

#include <catch2/catch.hpp>
#include <memory>

#include "libinterpose/core/token_bucket.h"

namespace bucket_test {

using namespace sluice::core;

constexpr std::int64_t start_ns = 5'000'000'000;
constexpr std::int64_t ms = 1'000'000;

inline std::uint64_t ops_per_second(std::uint64_t n) {
  std::uint64_t rate = 0;
  REQUIRE(make_rate(n * op_units, 1'000'000'000, rate));
  return rate;
}

inline curve_settings exact_settings(std::uint64_t rate, std::uint64_t cap) {
  curve_settings s = default_settings(rate, op_units);
  s.debt_ns = 0;
  s.cap_units = cap;
  return s;
}

struct fixture {
  std::unique_ptr<bucket> memory = std::make_unique<bucket>();
  bucket& b = *memory;
  std::int64_t now = start_ns;

  explicit fixture(curve_settings const& s, std::uint64_t origin = 0) { init(b, s, now, origin); }

  // True when it passed at once; else the ticket is left waiting.
  bool take(std::uint64_t cost, ticket& t) {
    return book(b, cost, t) || decide(b, t, now, 0).what == decision::pass;
  }

  // Sleeps as told until the ticket passes; the time of the pass.
  std::int64_t pass_time(ticket& t) {
    for (int i = 0; i < 100'000; ++i) {
      decision d = decide(b, t, now, 0);
      if (d.what == decision::pass) return now;
      REQUIRE(d.what == decision::wait);
      REQUIRE(d.deadline_ns > now);
      now = d.deadline_ns;
    }
    FAIL("never passes");
    return 0;
  }

  int burst(std::uint64_t cost, int most) {
    ticket t;
    int n = 0;
    while (n < most && take(cost, t)) ++n;
    return n;
  }
};

}  // namespace bucket_test
