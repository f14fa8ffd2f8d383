// SPDX-License-Identifier: Apache-2.0
// What `sluice policy check` finds beyond the words of the file.
#include "policy/class_limits.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "policy/doubts.h"
#include "policy/policy.h"

using namespace sluice;

namespace {

/// Two targets of a policy, by their paths.
policy::site both(std::string const& gathers, std::string const& durable) {
  return policy::parse_policy(
      fmt::format(R"({{"targets": {{"a": {{"path": "{}", "small": "strict"}},
                                   "b": {{"path": "{}", "order": "durable"}}}}}})",
                  gathers, durable),
      "site.json");
}

}  // namespace

TEST_CASE("class limits: an order within what gathers is found, though the trees are elsewhere") {
  auto const files = policy::as_written();
  CHECK_NOTHROW(policy::check_targets(both("/no/a", "/no/b"), files));
  CHECK_THROWS_WITH(policy::check_targets(both("/no/a", "/no/./a/b/"), files),
                    Catch::Contains("site.json:") && Catch::Contains("use one of the two"));
  CHECK_THROWS_WITH(policy::check_classes(both("/no", "/no/b"), "site.json", policy::as_found()),
                    Catch::StartsWith("site.json:"));
}

TEST_CASE("class limits: a class has the channels of the policy and its own limits") {
  auto const s = policy::parse_policy(
      R"({"targets": {"a": {"path": "/no/a"}},
          "channels": [{"name": "opens", "match": {"call": "open"}, "limit": "9/s"}],
          "classes": {"low": {"a": {"data": {"limit": "1MB/s"}}}}})",
      "site.json");
  CHECK(policy::input_of(s, "").channels.size() == 1);
  CHECK(policy::input_of(s, "low").channels.size() == 2);
  CHECK_NOTHROW(policy::check_classes(s, "site.json", policy::as_written()));
}

TEST_CASE("class limits: what a daemon adds for supplies is a doubt, for no node need have all") {
  auto const shared = [](unsigned targets) {
    std::string all;
    for (unsigned t = 0; t < targets; ++t)
      all += fmt::format(R"({}"t{}": {{"path": "/no/{}", "capacity": {{"metadata": "9/s"}}}})",
                         t == 0 ? "" : ",", t, t);
    return policy::parse_policy("{\"targets\": {" + all + "}}", "site.json");
  };
  auto const files = policy::as_written();
  CHECK(policy::doubts_of_granted(shared(15)).empty());
  CHECK_NOTHROW(policy::check_classes(shared(16), "site.json", files));
  CHECK_NOTHROW(policy::check_targets(shared(16), files));
  auto const doubts = policy::doubts_of_granted(shared(16));
  REQUIRE(doubts.size() == 1);
  CHECK_THAT(doubts[0], Catch::Contains("more than 15"));
}
