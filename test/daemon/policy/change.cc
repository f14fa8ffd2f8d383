// SPDX-License-Identifier: Apache-2.0
// What an operator is told before a policy is in force.
#include "policy/change.h"

#include <catch2/catch.hpp>

#include "policy/policy.h"

using namespace sluice;
using lines = std::vector<std::string>;

namespace {

policy::site with(std::string const& target) {
  return policy::parse_policy(R"({"targets": {"s": {"path": )" + target + "}}}", "p");
}

}  // namespace

TEST_CASE("what is done for files of a target is told when it changes", "[policy]") {
  auto const from = with(R"("/s")");
  CHECK(policy::changes(from, from).empty());
  CHECK(policy::changes(from, with(R"("/t")")) == lines{"target s of new jobs: at /s -> at /t"});
  CHECK(policy::changes(from, with(R"("/s", "small": "close-to-open")")) ==
        lines{"target s of new jobs: nothing but limits -> small close-to-open"});
  CHECK(policy::changes(with(R"("/s", "small": "strict")"), with(R"("/s", "order": "durable")")) ==
        lines{"target s of new jobs: small strict -> order durable, by process"});
  CHECK(policy::changes({}, with(R"("/s", "small": "reads")")) ==
        lines{"target s is new, at /s: small reads"});
  CHECK(policy::changes(from, {}) == lines{"target s is gone, for new jobs"});
}
