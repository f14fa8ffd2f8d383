// SPDX-License-Identifier: Apache-2.0
// What the times of calls tell of a supply, in words and as JSON.
#include "verbs/views/steered.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace sluice;
using core::unit_kind;

namespace {

verbs::steered_view steered(char const* sign, bool is_shadow = false) {
  policy::auto_capacity how;
  how.wanted_ns = 5'000'000;
  how.slow_ppm = 100'000;
  how.is_shadow = is_shadow;
  return verbs::steered_by(how, 50'000, 20'000'000, 214'300, sign, 312'000);
}

}  // namespace

TEST_CASE("steered view: what is in force, between which bounds, and why") {
  CHECK(verbs::steered_in_words(steered("falling"), unit_kind::ops) ==
        "Nobody wrote its capacity: it is 214/s now, between 50/s and 20k/s. It falls: 31.2 % of "
        "the calls took longer than 5ms, and 10 % may.");
  CHECK(
      verbs::steered_in_words(steered("quiet", true), unit_kind::vops) ==
      "Its capacity is the largest; steered it were 214 VOP/s, between 50 VOP/s and 20k VOP/s. "
      "It stays, for there are no calls: 31.2 % of the calls took longer than 5ms, and 10 % may.");
  auto all_slow = steered("lowest");
  all_slow.slow_ppm = 1'000'000;
  CHECK_THAT(verbs::steered_in_words(all_slow, unit_kind::ops),
             Catch::Contains(": 100 % of the calls took"));
  auto const row = verbs::steered_row(steered("rising"));
  CHECK(row["found"] == 214.3);
  CHECK(row["min"] == 50);
  CHECK(row["max"] == 20000);
  CHECK(row["latency_s"] == 0.005);
  CHECK(row["slow"] == 0.312);
  CHECK(row["slow_allowed"] == 0.1);
  CHECK(row["state"] == "rising");
  CHECK(row["shadow"] == false);
}

TEST_CASE("drift view: only what no longer fits is told") {
  CHECK(verbs::drift_in_words({"fits", 500'000, 400'000, 800'000}).empty());
  CHECK(verbs::drift_in_words({"unknown", 0, 400'000, 800'000}).empty());
  CHECK(verbs::drift_in_words({"less", 120'000, 400'000, 800'000}) ==
        "Its costs may be out of date. Busy, it gave 120 VOP/s, and 400 VOP/s were measured "
        "whatever meets. Or others use it too.");
  CHECK(verbs::drift_in_words({"more", 1'000'000, 400'000, 800'000}) ==
        "Its costs may be out of date. It gave 1k VOP/s, and 800 VOP/s were measured at most. Or "
        "reads come from the page cache.");
  CHECK(verbs::drift_row({"unknown", 0, 400'000, 800'000})["given"].is_null());
  CHECK(verbs::drift_row({"less", 120'000, 400'000, 800'000})["given"] == 120);
}
