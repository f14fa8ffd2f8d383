// SPDX-License-Identifier: Apache-2.0
#include "node/job_result.h"

#include <catch2/catch.hpp>

using namespace sluice;

TEST_CASE("how long a scheduler's job ran is no matter of the clock of people",
          "[node][job_result]") {
  constexpr std::int64_t came_unix_s = 1'700'000'000;
  constexpr double hour_s = 3600, day_s = 24 * hour_s;
  node::scheduler_terms terms;
  terms.since_unix_s = came_unix_s;
  terms.since_boot_s = 1000.5;
  terms.boot = "this";
  auto const after = [&](double set_by_s, std::string const& boot) {
    return node::elapsed_s(terms, {double{came_unix_s} + 60 + set_by_s, 1060.75}, boot);
  };
  for (double const set_by_s : {0.0, -2 * hour_s, 1000 * day_s})
    CHECK(after(set_by_s, "this") == 60);
  SECTION("after a start of the machine the time of day is all there is") {
    CHECK(after(0, "next") == 60);
    CHECK(after(2 * hour_s, "next") == 7260);
    CHECK(after(-2 * hour_s, "next") == 0);
  }
  SECTION("an earlier version, and a kernel that does not say") {
    terms.boot.clear();
    CHECK(after(0, "this") == 60);
    CHECK(after(0, "") == 60);
    CHECK(after(-2 * hour_s, "") == 0);
  }
}
