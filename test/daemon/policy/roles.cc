// SPDX-License-Identifier: Apache-2.0
// Roles of a policy: what they become, which limits hold for which, and that mistakes are shown
// with their place.
#include "policy/roles.h"

#include <catch2/catch.hpp>

#include "lib/policy_refusal.h"
#include "policy/compile.h"
#include "policy/policy.h"

using namespace sluice;
using Catch::Matchers::Equals;
using sluice::test::refusal;

namespace {

constexpr char const* good = R"({"roles": {"db": {"program": "*/db_bench",
    "flush": {"thread": "rocksdb:high"},
    "rest": {"rest": true},
    "low": [{"log": {"file": "LOG", "line": "Compacting *@0 *", "thread_word": 2}},
            {"reads": {"made_by": "flush", "until": "MANIFEST*"}},
            {"made_by": "flush", "call": ["read", "write"]}]},
  "tool": {"rest": {"rest": true}}},
  "channels": [{"name": "c", "match": {"call": "data", "role": "db.low"}, "limit": "1MiB/s"}]})";

std::string role(std::string const& conditions) {
  return refusal("{\"roles\": {\"g\": {\"r\": " + conditions + "}}}");
}

policy::compiled compile(policy::site const& site, std::vector<std::string> const& limits) {
  policy::compile_input input;
  input.channels = site.channels;
  input.roles = site.roles;
  for (auto const& text : limits) input.channels.push_back(policy::parse_limit(text));
  return policy::compile(input, {{}, [](std::string const& path) { return policy::place{path}; }});
}

}  // namespace

TEST_CASE("roles: what is told comes first, what takes the rest comes last") {
  auto const site = policy::parse_policy(good, "p");
  REQUIRE(site.roles.size() == 4);
  auto const t = policy::compile_roles(site.roles, {});
  REQUIRE(t->role_count == 4);
  REQUIRE(t->clause_count == 4 + 4 + 2);
  using core::role_source;
  constexpr role_source wanted[] = {role_source::told,    role_source::told,    role_source::told,
                                    role_source::told,    role_source::thread,  role_source::log,
                                    role_source::lineage, role_source::lineage, role_source::rest,
                                    role_source::rest};
  for (unsigned i = 0; i < t->clause_count; ++i)
    CHECK(t->clause[i].source == static_cast<std::uint8_t>(wanted[i]));
  CHECK(view(*t, t->clause[4].program) == "*/db_bench");
  CHECK(view(*t, t->clause[5].log_head) == "Compacting ");
  CHECK(view(*t, t->clause[5].log_line) == "Compacting *@0 **");
  CHECK(t->clause[6].reads == 1);
  CHECK(t->clause[7].made_by == 1);
  CHECK(t->clause[7].ops == (core::op_bit(core::op::read) | core::op_bit(core::op::write)));
}

TEST_CASE("roles: limits hold for the roles they name, and the others for all calls") {
  auto const site = policy::parse_policy(good, "p");
  auto const c = compile(site, {"data:rest=2MiB/s", "open=5/s"});
  core::ruleset const& r = *c.rules;
  REQUIRE(r.rule_count == 3);
  auto const rules_of = [&](unsigned of) {
    std::string names;
    for (unsigned i = 0; i < r.rule_count; ++i)
      if ((c.roles->rules_of[of] >> i & 1) != 0)
        names += std::string(core::view(r, r.channel[r.rule[i].channel].name)) + " ";
    return names;
  };
  CHECK(rules_of(0) == "open ");            // flush
  CHECK(rules_of(1) == "open data:rest ");  // of both groups
  CHECK(rules_of(2) == "open c ");          // low
  CHECK(rules_of(3) == "open data:rest ");
  CHECK(rules_of(core::max_roles) == "open ");
  CHECK(core::view(r, r.rule[1].role).size() + core::view(r, r.rule[2].role).size() == 10);
  CHECK(c.hash != compile(site, {"data=2MiB/s", "open=5/s"}).hash);
}

TEST_CASE("roles: many limits are fine as long as one call meets few") {
  auto const site = policy::parse_policy(good, "p");
  std::vector<std::string> limits;
  for (char const* name : {"flush", "low", "tool.rest"})
    for (char const* op : {"read", "data", "all", "vops"})
      if (std::string(op) != "vops") limits.push_back(std::string(op) + ":" + name + "=9/s");
  CHECK_NOTHROW(compile(site, limits));
}

TEST_CASE("roles: mistakes are shown with their place") {
  CHECK_THAT(role("{}"),
             Equals("p:1:23: roles.g.r has no condition; for all others write rest: true"));
  CHECK_THAT(role("{\"tread\": \"x\"}"),
             Equals("p:1:24: unknown key \"tread\" in roles.g.r; did you mean \"thread\"?"));
  CHECK_THAT(role("{\"log\": {\"file\": \"LOG\"}}"),
             Equals("p:1:31: roles.g.r.log wants both: {\"file\": PATTERN, \"line\": PATTERN}"));
  CHECK_THAT(
      role("{\"log\": {\"file\": \"LOG\", \"line\": \"ab*\"}}"),
      Equals("p:1:55: roles.g.r.log.line must begin with 4 letters before its first wildcard: "
             "they tell which lines are of this kind"));
  CHECK_THAT(role("{\"made_by\": \"s\"}"),
             Equals("p:1:23: roles.g has no role \"s\"; did you mean \"r\"? (it has: r)"));
  CHECK_THAT(role("{\"rest\": true, \"thread\": \"x\"}"),
             Equals("p:1:32: roles.g.r.rest is true, and alone"));
  CHECK_THAT(role("{\"environment\": \"X\"}"),
             Equals("p:1:39: roles.g.r.environment is written NAME=PATTERN"));
  CHECK_THAT(refusal("{\"roles\": {\"g\": {\"program\": \"x\"}}}"),
             Equals("p:1:12: roles.g has no role"));
  CHECK_THAT(refusal("{\"roles\": {\"g\": {\"a:b\": {\"rest\": true}}}}"),
             Equals("p:1:18: \"a:b\" is no name of a role: 1 to 31 letters, digits, - and _"));
  auto const site = policy::parse_policy(good, "p");
  CHECK_THAT(test::refusal_of([&] { compile(site, {"data:fush=1MiB/s"}); }),
             Catch::StartsWith("--limit data:fush=1MiB/s: there is no role \"fush\""));
  CHECK_THAT(
      test::refusal_of([&] { compile({}, {"data:flush=1MiB/s"}); }),
      Equals("--limit data:flush=1MiB/s: there is no role \"flush\": roles come from a policy"));
  CHECK_THAT(test::refusal_of([] { policy::parse_limit("data:=1MiB/s"); }),
             Equals("--limit data:=1MiB/s: no role stands after the colon"));
}
