// SPDX-License-Identifier: Apache-2.0
// What an operator is told before a policy is in force.
#include "policy/change.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "policy/policy.h"

using namespace sluice;
using lines = std::vector<std::string>;

namespace {

policy::site with(std::string const& target) {
  return policy::parse_policy(R"({"targets": {"s": {"path": )" + target + "}}}", "p");
}

policy::site read(std::string const& text) { return policy::parse_policy(text, "p"); }

lines between(std::string const& from, std::string const& to) {
  return policy::changes(read(from), from, read(to), to);
}

/// A policy with VOPs, by what a read of 64 KiB costs.
std::string with_costs(unsigned most, unsigned floor, unsigned cost) {
  nlohmann::json const costs = {{"version", 1},
                                {"max_vops", most},
                                {"provisionable_vops", floor},
                                {"read", {{4096, 1}, {65536, cost}}},
                                {"write", {{4096, 1}, {65536, 4}}}};
  nlohmann::json const site = {{"targets", {{"s", {{"path", "/s"}, {"cost", costs.dump()}}}}}};
  return site.dump();
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

TEST_CASE("who may use a class is told when it changes", "[policy]") {
  auto const with_access = [](std::string const& rules) {
    return R"({"targets": {"s": {"path": "/s", "capacity": {"metadata": "1k/s"}}},
      "classes": {"gold": {"s": {"metadata": {"weight": 2}}}}, "access": {)" +
           rules + "}}";
  };
  std::string const all = with_access(""), root = with_access(R"("gold": {"users": ["0"]})"),
                    two = with_access(R"("gold": {"users": ["0"], "groups": ["0"]})");
  CHECK(between(root, root).empty());
  CHECK(between(all, root) == lines{"class gold may be used by: everybody -> users 0"});
  CHECK(between(root, two) == lines{"class gold may be used by: users 0 -> users 0 and groups 0"});
  CHECK(between(two, all) == lines{"class gold may be used by: users 0 and groups 0 -> everybody"});
}

TEST_CASE("limits outside of shares are told when they change", "[policy]") {
  auto const with_channels = [](std::string const& channels) {
    return R"({"targets": {"s": {"path": "/s"}}, "channels": [)" + channels + "]}";
  };
  std::string const none = with_channels(""),
                    one = with_channels(R"({"name": "a", "match": {"call": "stat", "target": "s"},
                                            "limit": "50/s"})"),
                    other = with_channels(R"({"name": "a", "match": {"call": "stat"},
                                              "limit": "60/s"})");
  CHECK(between(none, one) == lines{"new channel a: stat at most 50/s, on s"});
  CHECK(between(one, other) ==
        lines{"channel a: stat at most 50/s, on s -> stat at most 60/s, everywhere"});
  CHECK(between(other, none) == lines{"channel a is gone"});

  auto const with_limit = [](std::string const& limit) {
    return R"({"targets": {"s": {"path": "/s"}},
               "classes": {"gold": {"s": {"metadata": {)" +
           limit + "}}}}}";
  };
  CHECK(between(with_limit(R"("limit": "5/s")"), with_limit(R"("limit": "7/s")")) ==
        lines{"limit of class gold on metadata@s: 5/s -> 7/s"});
  CHECK(between(with_limit(R"("limit": "5/s")"), with_limit(R"("weight": 1)")) ==
        lines{"limit of class gold on metadata@s: 5/s -> unlimited"});
}

TEST_CASE("priority, roles and requests are told when they change", "[policy]") {
  auto const with_priority = [](std::string const& priority) {
    return R"({"targets": {"s": {"path": "/s", "capacity": {"metadata": "1k/s"}}},
      "classes": {"gold": {"s": {"metadata": {"priority": )" +
           priority + "}}}}}";
  };
  CHECK(between(with_priority("1"), with_priority("7")) ==
        lines{"priority of class gold on metadata@s: 1 -> 7"});

  auto const with_role = [](std::string const& role, std::string const& request) {
    return R"({"roles": {"db": {"log": )" + role + R"(}}, "requests": {"put": )" + request + "}}";
  };
  std::string const thread = R"({"thread": "t"})", write = R"({"call": "write", "role": "log"})";
  CHECK(between(with_role(thread, write), with_role(R"({"thread": "u"})", write)) ==
        lines{"role db.log: of threads named t -> of threads named u"});
  CHECK(between(with_role(thread, write), with_role(R"({"thread": "t", "call": "write"})", write))
            .front() == "role db.log: of threads named t -> of threads named t; for write");
  CHECK(between(with_role(thread, write), with_role(thread, R"({"call": "read"})")) ==
        lines{"request put: each write of role log -> each read"});
}

TEST_CASE("what requests cost is told when it changes", "[policy]") {
  CHECK(between(with_costs(800, 400, 4), with_costs(900, 400, 4)) ==
        lines{"costs of target s: 800 VOP/s at most, 400 VOP/s whatever meets -> 900 VOP/s at "
              "most, 400 VOP/s "
              "whatever meets"});
  CHECK(between(with_costs(800, 400, 4), with_costs(800, 400, 5)) ==
        lines{"costs of target s: requests cost other parts of it"});
}

TEST_CASE("texts that differ are not called the same", "[policy]") {
  std::string const text = R"({"targets": {"s": {"path": "/s"}}})";
  CHECK(between(text, text).empty());
  CHECK(between(text, "{\n" + text.substr(1)) ==
        lines{"the text differs, and nothing of what is in force"});
  // Nothing tells of a capacity in other words.
  auto const with_capacity = [](std::string const& rate) {
    return R"({"targets": {"s": {"path": "/s", "capacity": {"metadata": ")" + rate + R"("}}}})";
  };
  CHECK(between(with_capacity("1k/s"), with_capacity("1000/s")) ==
        lines{"something else differs: compare it with what `sluice policy get` prints"});
}
