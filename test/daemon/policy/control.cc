// SPDX-License-Identifier: Apache-2.0
// The sections of a policy that the control plane reads: who may use what, which nodes there are,
// and that promises fit into what there is to promise.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "policy/algorithm.h"
#include "policy/control.h"
#include "policy/policy.h"
#include "policy/supply.h"

using namespace sluice;
using Catch::Matchers::Equals;

namespace {

constexpr char const* targets = R"("targets": {
  "s": {"path": "/s", "capacity": {"metadata": "200k/s", "data": "20GiB/s"}},
  "h": {"path": "/h", "capacity": {"data": "1GB/s"}}},)";

std::string policy_with(std::string const& rest) {
  std::string text = "{";
  return text += targets + rest + "}";
}

policy::site parse(std::string const& rest) { return policy::parse_policy(policy_with(rest), "p"); }

std::string refusal(std::string const& rest) {
  try {
    parse(rest);
  } catch (error const& e) {
    CHECK(e.status() == exit_usage);
    return e.what();
  }
  return "accepted";
}

constexpr char const* two_classes = R"(
"classes": {"gold": {"s": {"metadata": {"reservation": "150k/s", "weight": 3}}},
  "lead": {"s": {"metadata": {"limit": "1k/s", "priority": 7}}}})";

}  // namespace

TEST_CASE("policy control: everything that can be said") {
  auto const s = parse(std::string(two_classes) + R"(, "control": {"nodes": "n[1-3],login1",
    "cycle": "50ms", "lease": "2s", "escrow": 0.4, "floor": 0.02, "pool_owner": "majority",
    "orphans": "keep", "default_class": "lead", "enforce": false},
    "access": {"gold": {"users": [7, "root"], "groups": [12]}}, "algorithm": "drf")");
  CHECK(s.algorithm == "drf");
  CHECK(s.control.nodes == std::vector<std::string>{"n1", "n2", "n3", "login1"});
  CHECK(parse(R"("control": {"nodes": ["n[1-3]", "login1"]})").control.nodes == s.control.nodes);
  CHECK(s.control.cycle_ns == 50'000'000);
  CHECK(s.control.lease_ns == 2'000'000'000);
  CHECK(s.control.escrow_ppm == 400'000);
  CHECK(s.control.floor_ppm == 20'000);
  CHECK(s.control.pool == policy::pool_owner::majority);
  CHECK(s.control.orphans == policy::orphan_mode::keep);
  CHECK(s.control.default_class == "lead");
  CHECK(!s.control.enforce);
  CHECK(policy::warnings(s).size() == 1);          // algorithm
  CHECK(policy::cluster_warnings(s).size() == 1);  // orphans
}

TEST_CASE("policy control: what holds when nothing is said") {
  auto const s = policy::parse_policy("{}", "p");
  CHECK(s.control.nodes.empty());
  CHECK(s.control.cycle_ns == 100'000'000);
  CHECK(s.control.lease_ns == 1'000'000'000);
  CHECK(s.control.escrow_ppm == 290'000);
  CHECK(s.control.floor_ppm == 10'000);
  CHECK(s.control.pool == policy::pool_owner::single);
  CHECK(s.control.orphans == policy::orphan_mode::safe);
  CHECK(s.control.enforce);
  CHECK(policy::warnings(s).empty());
  CHECK(parse(R"("control": {"nodes": "a", "pool_owner": "none"})").control.escrow_ppm == 990'000);
}

TEST_CASE("policy control: who may use a class") {
  auto const s =
      parse(std::string(two_classes) + R"(, "access": {"gold": {"users": [7], "groups": [12]}})");
  gid_t const none[] = {3}, member[] = {3, 12};
  CHECK(policy::may_use(s, "gold", 7, none));
  CHECK(policy::may_use(s, "gold", 8, member));
  CHECK(!policy::may_use(s, "gold", 8, none));
  CHECK(!policy::may_use(s, "gold", 8, {}));
  CHECK(policy::may_use(s, "gold", 0, {}));
  CHECK(policy::may_use(s, "lead", 8, none));
  auto const strangers =
      parse(std::string(two_classes) + R"(, "access": {"gold": {"users": ["no-such-user-here"]}})");
  CHECK(!policy::may_use(strangers, "gold", 8, none));
  CHECK(policy::warnings(strangers).size() == 1);
  CHECK(policy::cluster_warnings(strangers).size() == 1);  // no control.nodes
}

TEST_CASE("policy control: supplies and shares") {
  auto const s = parse(two_classes);
  auto const all = policy::supplies(s);
  REQUIRE(all.size() == 3);
  CHECK(all[0].name() == "data@h");
  CHECK(all[0].capacity == 1'000'000'000'000);
  CHECK(all[1].name() == "data@s");
  CHECK(all[1].unit == core::unit_kind::bytes);
  CHECK(all[2].name() == "metadata@s");
  CHECK(all[2].capacity == 200'000'000);
  auto const gold = policy::share_of(s, "gold", all[2]);
  REQUIRE(gold);
  CHECK(gold->weight == 3);
  CHECK(policy::milli_per_second(*gold->reservation) == 150'000'000);
  CHECK(policy::share_of(s, "lead", all[2])->priority == 7);
  CHECK(!policy::share_of(s, "gold", all[0]));
  CHECK(!policy::share_of(s, "none", all[2]));
}

TEST_CASE("policy control: a grant becomes a rate that is never above it") {
  for (std::uint64_t milli : {0ull, 1ull, 999ull, 1'000ull, 333'333'333ull, 2'000'000'000'000ull})
    for (auto unit : {core::unit_kind::ops, core::unit_kind::bytes}) {
      policy::rate r;
      r.unit = unit;
      r.rate_q40 = policy::rate_q40_of(milli, unit);
      CHECK(policy::per_second(unit, r.rate_q40) * 1000 <= static_cast<double>(milli) * 1.000001);
      CHECK(static_cast<double>(policy::milli_per_second(r)) + 2 >=
            static_cast<double>(milli) * 0.999999);
    }
}

TEST_CASE("policy control: what nodes own adds up to no more than the capacity") {
  auto const s = parse(R"("control": {"nodes": "n[1-7]", "escrow": 0.7, "floor": 0.3})");
  for (auto const& of : policy::supplies(s)) {
    auto const own = policy::own_part_of(s, of);
    CHECK(own.escrow == of.capacity / 10 * 7 / 7);
    CHECK(7 * (own.escrow + own.floor) <= of.capacity);
    CHECK(7 * (own.escrow + own.floor) + 14 > of.capacity);
  }
  auto const nobody = parse(R"("control": {})");
  CHECK(policy::own_part_of(nobody, policy::supplies(nobody)[0]).escrow == 0);
}

TEST_CASE("policy control: reservations must fit, the sum is shown") {
  CHECK_THAT(
      refusal("\n\"classes\": {\"gold\": {\"s\": {\"metadata\": {\"reservation\": \"150k/s\"}}},\n"
              " \"silver\": {\"s\": {\"metadata\": {\"reservation\": \"70k/s\"}}}}"),
      Equals("p:5:31: reservations of metadata@s exceed its capacity: 150k/s (gold) + 70k/s "
             "(silver) = 220k/s, 20k/s more than the 200k/s there are; lower a reservation (one "
             "job of each class must fit)"));
  CHECK_THAT(refusal(R"("classes": {"a": {"h": {"metadata": {"reservation": "1/s"}}}})"),
             Catch::Contains("classes.a.h.metadata reserves of a capacity that target h has not"));
}

TEST_CASE("policy control: mistakes are shown with their place") {
  auto const control = [](std::string const& inside) {
    return refusal("\n\"control\": {" + inside + "}");
  };
  CHECK_THAT(control("\"orphan\": \"safe\""),
             Equals("p:4:13: unknown key \"orphan\" in control; did you mean \"orphans\"?"));
  CHECK_THAT(control("\"orphans\": \"save\""),
             Equals("p:4:24: unknown control.orphans \"save\"; did you mean \"safe\"?"));
  CHECK_THAT(control("\"cycle\": \"100\""), Catch::Contains("p:4:22: control.cycle: \"100\": the "
                                                            "unit is missing"));
  CHECK_THAT(control("\"cycle\": \"1ms\""), Catch::Contains("wanted 10ms to 1min"));
  CHECK_THAT(control("\"lease\": \"200ms\""), Catch::Contains("at least five cycles of 100ms"));
  CHECK_THAT(control("\"escrow\": 0.995"), Catch::Contains("together are 1.005, more than 1"));
  CHECK_THAT(control("\"escrow\": \"30%\""), Catch::Contains("must be a number, not a string"));
  CHECK_THAT(control("\"nodes\": [\"a\", 5]"),
             Catch::Contains("control.nodes[1] must be a string"));
  CHECK_THAT(control("\"nodes\": [\"a\", \"a\"]"), Catch::Contains("names a twice"));
  CHECK_THAT(control("\"nodes\": []"), Catch::Contains("names no node"));
  CHECK_THAT(control("\"nodes\": 5"), Catch::Contains("must be a string or an array"));
  CHECK_THAT(control("\"pool_owner\": \"majority\""), Catch::Contains("needs control.nodes"));
  CHECK_THAT(control("\"default_class\": \"gold\""), Catch::Contains("unknown class \"gold\""));
  CHECK_THAT(control("\"enforce\": 0"), Catch::Contains("must be true or false"));
  CHECK_THAT(refusal("\"access\": {\"gold\": {}}"), Catch::Contains("unknown class \"gold\""));
  CHECK_THAT(refusal(std::string(two_classes) + ", \"access\": {\"gold\": {\"user\": []}}"),
             Catch::Contains("did you mean \"users\"?"));
}

TEST_CASE("policy control: every algorithm of the table can be named") {
  for (auto const& row : policy::algorithm_rows) {
    auto const s = policy::parse_policy("{\"algorithm\": \"" + std::string(row.name) + "\"}", "p");
    CHECK(policy::warnings(s).empty() == row.is_ready);
  }
}

TEST_CASE("policy control: the hash of a text") {
  CHECK(policy::policy_hash("") == 0xcbf29ce484222325ull);
  CHECK(policy::policy_hash("a") == 0xaf63dc4c8601ec8cull);
}
