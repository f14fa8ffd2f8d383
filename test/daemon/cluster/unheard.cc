// SPDX-License-Identifier: Apache-2.0
#include "cluster/unheard.h"

#include <catch2/catch.hpp>

#include "policy/policy.h"

using namespace sluice;

namespace {

policy::site site_of(std::string const& nodes, std::string const& capacity) {
  return policy::parse_policy(R"({"targets": {"t": {"path": "/t", "capacity": {)" + capacity +
                                  R"(}}}, "control": {"nodes": ")" + nodes +
                                  R"(", "escrow": 0.2, "floor": 0.1}})",
                              "policy");
}

constexpr char const* five = R"("metadata": "6000/s")";

std::vector<std::string> told(std::vector<std::string> const& unheard, std::string const& nodes,
                              std::string const& capacity) {
  return cluster::overruns_of(unheard, site_of("n[1-3]", five), site_of(nodes, capacity));
}

}  // namespace

TEST_CASE("what unheard nodes keep of a policy before is said", "[cluster][unheard]") {
  // Each of three owns 600/s.
  SECTION("nothing is overrun") {
    CHECK(told({}, "n[1-2]", five).empty());
    CHECK(told({"n3"}, "n[1-3]", five).empty());
    CHECK(told({"n3"}, "n[1-3]", R"("metadata": "9000/s")").empty());
    CHECK(told({"n9"}, "n[1-2]", five).empty());
    CHECK(told({"n3"}, "n[1-2]", R"("data": "1GB/s")").empty());
  }
  SECTION("a node that is named no more") {
    auto const lines = told({"n2", "n3"}, "n1", five);
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], Catch::StartsWith("metadata@t: ") && Catch::Contains("2 nodes: n2, n3") &&
                             Catch::Contains("1.2k/s"));
  }
  SECTION("a lower capacity") {
    auto const lines = told({"n3"}, "n[1-3]", R"("metadata": "3000/s")");
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], Catch::Contains("n3") && Catch::Contains("300/s"));
  }
}
