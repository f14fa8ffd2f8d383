// SPDX-License-Identifier: Apache-2.0
// Capacities that are steered, as a policy writes them: what is refused, what is there in any case,
// what a part is a part of, and the words for it.
#include "policy/auto_capacity.h"

#include <catch2/catch.hpp>

#include "lib/policy_refusal.h"
#include "policy/change.h"
#include "policy/policy.h"
#include "policy/supply.h"

using namespace sluice;
using Catch::Contains;
using sluice::test::refusal;

namespace {

std::string with(std::string const& capacity, std::string const& classes = "") {
  return R"({"targets": {"s": {"path": "/s", "capacity": {"metadata": )" + capacity +
         R"(}}}, "classes": {)" + classes + R"(}, "control": {"nodes": "n[1-2]"}})";
}

std::string reserving(char const* amount) {
  return std::string(R"("gold": {"s": {"metadata": {"reservation": ")") + amount + R"("}}})";
}

policy::supply supply_of(std::string const& text) {
  return policy::supplies(policy::parse_policy(text, "p")).at(0);
}

constexpr char const* plain = R"({"auto": true, "min": "100/s", "max": "20k/s",
                                  "latency": "5ms p99"})";

}  // namespace

TEST_CASE("auto capacity: what is written") {
  auto const s = supply_of(with(plain));
  REQUIRE(s.steered);
  CHECK(s.capacity == 20'000'000);
  CHECK(s.least == 100'000);
  CHECK(s.lowest == 100'000);
  CHECK(s.promisable == 100'000);
  CHECK(s.steered->wanted_ns == 5'000'000);
  CHECK(s.steered->slow_ppm == 10'000);
  CHECK_FALSE(s.steered->is_shadow);
  CHECK(policy::capacity_in_words(s) ==
        "steered from 100/s to 20k/s so that at most 1 % of the calls may take longer than 5ms");
  auto const usual = supply_of(with(R"({"auto": true, "max": "20k/s", "latency": "1.5s"})"));
  CHECK(usual.steered->slow_ppm == 100'000);
  CHECK(usual.steered->wanted_ns == 1'500'000'000);
}

TEST_CASE("auto capacity: what nodes own is a part of what is there in any case") {
  policy::site const site = policy::parse_policy(with(plain), "p");
  auto const part = policy::own_part_of(site, policy::supplies(site).at(0));
  CHECK(part.escrow == 100'000 * 29 / 100 / 2);
  CHECK(part.floor == 100'000 / 100 / 2);
}

TEST_CASE("auto capacity: without a least it is the reservations, or a hundredth of the most") {
  std::string const open = R"({"auto": true, "max": "20k/s", "latency": "5ms p90"})";
  CHECK(supply_of(with(open)).least == 200'000);
  auto const s = supply_of(with(open, reserving("700/s")));
  CHECK(s.least == 700'000);
  CHECK(s.promisable == 20'000'000);
}

TEST_CASE("auto capacity: a shadow divides the most and tells the rest") {
  auto const s = supply_of(with(
      R"({"auto": true, "min": "100/s", "max": "20k/s", "latency": "5ms p90", "shadow": true})"));
  CHECK(s.least == 20'000'000);
  CHECK(s.lowest == 100'000);
  CHECK_THAT(policy::capacity_in_words(s), Contains("20k/s, and only told what it were steered"));
}

TEST_CASE("auto capacity: reservations must fit what is there in any case") {
  CHECK_THAT(
      refusal(with(plain, reserving("150/s"))),
      Contains("exceed the \"min\" of its capacity: 150/s (gold) = 150/s, 50/s more than the "
               "100/s there are"));
  policy::site const site = policy::parse_policy(with(plain, reserving("40%")), "p");
  auto const share = policy::share_of(site, "gold", policy::supplies(site).at(0));
  CHECK(policy::milli_per_second(*share->reservation) == 40'000);
  CHECK_THAT(refusal(with(R"({"auto": true, "max": "20k/s", "latency": "5ms"})", reserving("40%"))),
             Contains("is a part of a capacity that moves: give that a \"min\""));
  policy::site const limited =
      policy::parse_policy(with(plain, R"("tin": {"s": {"metadata": {"limit": "10%"}}})"), "p");
  auto const ceiling = policy::share_of(limited, "tin", policy::supplies(limited).at(0));
  CHECK(policy::milli_per_second(*ceiling->limit) == 2'000'000);
}

TEST_CASE("auto capacity: bad input is refused with its place") {
  auto const why = [](char const* capacity) { return refusal(with(capacity)); };
  CHECK_THAT(why(R"({"min": "1/s", "max": "2/s", "latency": "5ms"})"),
             Contains("p:1:") && Contains("needs \"auto\": true"));
  CHECK_THAT(why(R"({"auto": false, "max": "2/s", "latency": "5ms"})"),
             Contains("a capacity that is known is a rate"));
  CHECK_THAT(why(R"({"auto": 1, "max": "2/s", "latency": "5ms"})"), Contains("auto must be"));
  CHECK_THAT(why(R"({"auto": true, "latency": "5ms"})"), Contains("has no \"max\""));
  CHECK_THAT(why(R"({"auto": true, "max": "0", "latency": "5ms"})"), Contains("max is 0"));
  CHECK_THAT(why(R"({"auto": true, "max": "2MB/s", "latency": "5ms"})"), Contains("metadata"));
  CHECK_THAT(why(R"({"auto": true, "max": "2/s"})"), Contains("has no \"latency\""));
  CHECK_THAT(why(R"({"auto": true, "max": "2/s", "latency": "5ms p9"})"),
             Contains("\"5ms p9\" is no time and percentile"));
  CHECK_THAT(why(R"({"auto": true, "max": "2/s", "latency": "5ms p90 p95"})"),
             Contains("is no time and percentile"));
  CHECK_THAT(why(R"({"auto": true, "max": "2/s", "latency": "5 p90"})"), Contains("latency"));
  CHECK_THAT(why(R"({"auto": true, "max": "2/s", "latency": "2h p90"})"),
             Contains("latency is 2h, wanted 1us to 1min"));
  CHECK_THAT(why(R"({"auto": true, "max": "2/s", "min": "0", "latency": "5ms"})"),
             Contains("min is 0"));
  CHECK_THAT(why(R"({"auto": true, "max": "2/s", "min": "3/s", "latency": "5ms"})"),
             Contains("min is above the max"));
  CHECK_THAT(why(R"({"auto": true, "most": "2/s", "latency": "5ms"})"), Contains("most"));
  CHECK_THAT(why(R"(["auto"])"), Contains("capacity.metadata"));
}

TEST_CASE("auto capacity: a change is told in words") {
  auto const lines = policy::changes(policy::parse_policy(with("\"5k/s\""), "a"),
                                     policy::parse_policy(with(plain), "b"));
  REQUIRE(!lines.empty());
  CHECK_THAT(lines[0], Contains("capacity of metadata@s: 5k/s -> steered from 100/s to 20k/s"));
}
