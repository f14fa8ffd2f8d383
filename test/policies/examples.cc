// SPDX-License-Identifier: Apache-2.0
// The table in policies/examples/README.md: what the three classes get, by the allocator that the
// policy names.
#include <catch2/catch.hpp>
#include <fstream>

#include "policies/allocate.h"
#include "policy/policy.h"
#include "policy/supply.h"

using namespace sluice;

namespace {

constexpr char const* file = "policies/examples/three-classes.json";

/// What one job of each listed class gets of metadata on scratch, in operations per second; all
/// want more than there is.
std::vector<std::uint64_t> shares(std::vector<std::string> const& classes) {
  auto const site = policy::read_policy(file);
  for (auto const& of : policy::supplies(site)) {
    if (of.name() != "metadata@scratch") continue;
    policies::supply one;
    one.capacity = of.capacity;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      auto const share = policy::share_of(site, classes[i], of);
      REQUIRE(share);
      policies::claim c;
      c.job = i + 1;
      c.weight = static_cast<std::uint32_t>(share->weight * 1000);
      if (share->reservation) c.reservation = policy::milli_per_second(*share->reservation);
      if (share->limit) c.limit = policy::milli_per_second(*share->limit);
      c.blocked = true;
      c.waiters = 1;
      one.claims.push_back(c);
    }
    std::vector<std::vector<policies::rate>> grants;
    policies::find_algorithm(site.algorithm)->make()->allocate({&one, 1}, 1, grants);
    std::vector<std::uint64_t> out;
    for (auto g : grants.at(0)) out.push_back(g / 1000);
    return out;
  }
  return {};
}

}  // namespace

TEST_CASE("policy examples: the table of the walk-through") {
  if (!std::ifstream(file)) return;  // not started at the top of the tree
  CHECK(shares({"interactive", "batch", "batch", "scavenger", "scavenger", "scavenger"}) ==
        std::vector<std::uint64_t>{34285, 20000, 20000, 8571, 8571, 8571});
  CHECK(shares({"interactive", "scavenger", "scavenger", "scavenger"}) ==
        std::vector<std::uint64_t>{57142, 14285, 14285, 14285});
  CHECK(shares({"scavenger", "scavenger", "scavenger"}) ==
        std::vector<std::uint64_t>{20000, 20000, 20000});
}
