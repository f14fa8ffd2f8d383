// SPDX-License-Identifier: Apache-2.0
#include "journal/own_times.h"

#include <catch2/catch.hpp>

using sluice::journal::own_times;

TEST_CASE("a recovery's own time is that of its attempts, not what lies between", "[order]") {
  own_times t = {};
  constexpr std::uint64_t s = 1'000'000'000;
  CHECK_FALSE(t.contain(1));
  t.begin(100 * s);
  CHECK((t.contain(100 * s) && t.contain(105 * s) && !t.contain(99 * s) && !t.contain(111 * s)));
  CHECK_FALSE(t.want_renewal(101 * s));
  CHECK(t.want_renewal(106 * s));
  t.renew(106 * s);
  CHECK((t.contain(115 * s) && !t.contain(117 * s)));
  t.end(107 * s);
  CHECK((t.contain(107 * s) && !t.contain(108 * s)));
  t.begin(200 * s);
  CHECK((t.contain(101 * s) && t.contain(201 * s) && !t.contain(150 * s)));
  t.end(201 * s);
  CHECK((t.contain(107 * s) && t.contain(201 * s) && !t.contain(202 * s)));
  // Of the oldest nothing is known any more.
  for (unsigned i = 3; i <= 9; ++i) t.begin(i * 100 * s), t.end(i * 100 * s + s);
  CHECK((!t.contain(101 * s) && t.contain(201 * s) && t.contain(901 * s)));
}

TEST_CASE("an attempt that ends in a call of its own knows that it lived so long", "[order]") {
  constexpr std::uint64_t s = 1'000'000'000;
  own_times times = {};
  times.begin(100 * s);
  times.close(125 * s);  // told to end while a file's lock was held by somebody
  CHECK(times.contain(120 * s));
  CHECK_FALSE(times.contain(126 * s));
  times.begin(130 * s);
  times.end(131 * s);  // by the next attempt, of one that was killed
  CHECK_FALSE(times.contain(132 * s));
}
