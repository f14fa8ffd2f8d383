// SPDX-License-Identifier: Apache-2.0
// Policy files: what they mean, and that every mistake is shown with its place.
#include "policy/policy.h"
#include "policy/order.h"

#include <catch2/catch.hpp>

#include "base/most_supplies.h"
#include "lib/policy_refusal.h"

using namespace sluice;
using Catch::Matchers::Equals;
using sluice::test::refusal;

namespace {

constexpr char const* good = R"({
  "targets": {"scratch": {"path": "/scratch", "capacity": {"metadata": "200k/s",
    "data": "20GiB/s"}}},
  "classes": {"bulk": {"scratch": {
    "metadata": {"reservation": "10k/s", "weight": 2, "limit": "50k/s"},
    "data": {"limit": "1GiB/s"}}},
              "free": {"scratch": {"metadata": {"weight": 1}}}},
  "channels": [{"name": "logs", "match": {"call": ["open", "stat"], "target": "scratch",
                "path": "*.log", "thread": "rocks*", "user": 0}, "limit": "100/s"}],
  "algorithm": "maxmin"
})";

}  // namespace

TEST_CASE("policy: everything that can be said") {
  auto const site = policy::parse_policy(good, "site.json");
  REQUIRE(site.targets.size() == 1);
  CHECK(site.targets[0].path == "/scratch");
  CHECK(policy::per_second(core::unit_kind::ops,
                           site.capacity.at("scratch").at("metadata").rate_q40) == 200000);
  REQUIRE(site.channels.size() == 1);
  CHECK(site.channels[0].origin == "site.json:8:16");
  CHECK(site.channels[0].ops == (core::op_bit(core::op::open) | core::op_bit(core::op::stat)));
  CHECK(site.channels[0].user == 0);
  CHECK(site.classes.at(0).shares.at("scratch").at("metadata").weight == 2);
}

TEST_CASE("policy: a class becomes channels") {
  auto const site = policy::parse_policy(good, "p");
  auto const channels = policy::channels_of(site, "bulk");
  REQUIRE(channels.size() == 3);
  CHECK(channels[1].name == "data@scratch");
  CHECK(channels[1].amount.unit == core::unit_kind::bytes);
  CHECK(channels[2].name == "metadata@scratch");
  CHECK(policy::channels_of(site, "free").size() == 1);
  CHECK(policy::channels_of(site, "").size() == 1);
  CHECK_THROWS_WITH(policy::channels_of(site, "bluk"), Catch::Contains("did you mean \"bulk\"?"));
}

TEST_CASE("policy: mistakes are shown with their place") {
  CHECK_THAT(refusal("{\n  \"chanels\": []\n}"),
             Equals("p:2:3: unknown key \"chanels\" in the policy; did you mean \"channels\"?"));
  CHECK_THAT(refusal("{\"channels\": [{\"name\": \"a\",\n \"limt\": \"1/s\"}]}"),
             Equals("p:2:2: unknown key \"limt\" in channels[0]; did you mean \"limit\"?"));
  CHECK_THAT(refusal("{\"channels\": [{\"name\": \"a\"}]}"),
             Equals("p:1:15: channels[0] has no \"limit\""));
  CHECK_THAT(refusal("{\"channels\": 7}"),
             Equals("p:1:14: channels must be an array, not a number"));
  CHECK_THAT(refusal("{\"channels\": [true ]}"),
             Equals("p:1:15: channels[0] must be an object, not true or false"));
  CHECK_THAT(refusal("{\"channels\": [{\"name\": \"a\\\"\", \"limit\": 5}]}"),
             Equals("p:1:40: channels[0].limit must be a string, not a number"));
  CHECK_THAT(refusal("{\"algorithm\": \"maxmim\"}"),
             Equals("p:1:15: unknown algorithm \"maxmim\"; did you mean \"maxmin\"?"));
  CHECK_THAT(refusal("{\"targets\": {\"s\": {\"path\": \"scratch\"}}}"),
             Equals("p:1:28: targets.s.path must begin with /"));
  CHECK_THAT(refusal("{\"algorithm\": \"drf\", \"algorithm\": \"drf\"}"),
             Equals("p:1:22: \"algorithm\" stands here twice"));
  CHECK_THAT(
      refusal("{\"targets\": {\"s\": {\"path\": \"/s\", \"capacity\": {\"data\": \"5k/s\"}}}}"),
      Catch::Contains("data is measured in bytes, like 20GiB/s"));
  CHECK_THAT(refusal("{\"classes\": {\"c\": {\"nowhere\": {}}}}"),
             Equals("p:1:20: unknown target \"nowhere\" in classes.c"));
}

TEST_CASE("policy: no input can exhaust us") {
  CHECK_THAT(refusal(std::string(100000, '[')), Catch::Contains("nested deeper than 16"));
  CHECK_THAT(refusal(std::string(2 << 20, ' ')), Catch::Contains("larger than 1 MiB"));
  CHECK_THAT(refusal(""), Catch::Contains("not JSON"));
  CHECK_THAT(refusal("{\"a\": 1e999}"), Catch::Contains("not JSON"));
  CHECK_THAT(refusal("\"\\ud800\""), Catch::Contains("not JSON"));
}

TEST_CASE("policy: a target may be durable or ordered") {
  auto const with = [](std::string const& order) {
    return R"({"targets": {"d": {"path": "/d", "order": )" + order + "}}}";
  };
  auto const target = [&](std::string const& order) {
    return policy::parse_policy(with(order), "p").targets.at(0);
  };
  CHECK((target("\"durable\"").durable && !target("\"durable\"").ordered));
  CHECK((target("\"ordered\"").durable && target("\"ordered\"").ordered));
  CHECK_THAT(refusal(with("\"durabel\"")), Catch::Contains("did you mean \"durable\""));
  CHECK_THAT(refusal(with("\"orderd\"")), Catch::Contains("did you mean \"ordered\""));
  CHECK_THAT(refusal(with("true")), Catch::Contains("targets.d.order"));
  // And say whose changes wait.
  CHECK(target("\"ordered\"").stream == policy::order_stream::process);
  CHECK(target(R"("ordered", "stream": "thread")").stream == policy::order_stream::thread);
  CHECK(target(R"("durable", "stream": "path")").stream == policy::order_stream::path);
  CHECK_THAT(refusal(with(R"("ordered", "stream": "jop")")),
             Catch::Contains("did you mean \"job\""));
  CHECK_THAT(refusal(R"({"targets": {"d": {"path": "/d", "stream": "job"}}})"),
             Catch::Contains("says nothing without an \"order\""));
  CHECK(policy::parse_order_target("ordered:job@/d").stream == policy::order_stream::job);
  CHECK_THROWS(policy::parse_order_target("ordered:@/d"));
}

TEST_CASE("policy: what comes after what in a target") {
  auto const with = [](std::string const& after) {
    return R"({"targets": {"d": {"path": "/d", "after": )" + after + "}}}";
  };
  auto const spec = [&](std::string const& after) {
    return policy::parse_policy(with(after), "p").targets.at(0).after.value();
  };
  auto const plain = spec(R"({"write": "*/MANIFEST-*", "durable": "*/rank-*"})");
  CHECK(plain.write == "*/MANIFEST-*");
  CHECK(plain.durable == "*/rank-*");
  CHECK(plain.patience_ns == 60'000'000'000);
  CHECK(spec(R"({"write": "a", "durable": "b", "patience": "5s"})").patience_ns == 5'000'000'000);
  CHECK_FALSE(policy::parse_policy(R"({"targets": {"d": {"path": "/d"}}})", "p").targets[0].after);
  using Catch::Contains;
  CHECK_THAT(refusal(with(R"({"write": "a"})")), Contains("targets.d.after has no \"durable\""));
  CHECK_THAT(refusal(with(R"({"write": "a", "durabel": "b"})")), Contains("durable"));
  CHECK_THAT(refusal(with(R"({"write": "", "durable": "b"})")), Contains("write is empty"));
  CHECK_THAT(refusal(with(R"({"write": "a", "durable": "a"})")), Contains("the same"));
  CHECK_THAT(refusal(with(R"({"write": "a", "durable": "b", "patience": "1ms"})")),
             Contains("patience"));
  CHECK_THAT(refusal(with("true")), Contains("targets.d.after"));
}

TEST_CASE("policy: a rate that would come to none is refused, and 0 is not") {
  auto const with = [](std::string const& limit, std::string const& capacity = "100/s") {
    return R"({"targets": {"s": {"path": "/s", "capacity": {"metadata": ")" + capacity +
           R"("}}}, "classes": {"c": {"s": {"metadata": {"limit": ")" + limit + "\"}}}}}";
  };
  for (char const* little : {"1/h", "3.5/h", "0.0009/s"})
    CHECK_THAT(refusal(with(little)),
               Catch::Contains("classes.c.s.metadata.limit: \"" + std::string(little) +
                               "\" is less than 0.001/s, the least there is here") &&
                   Catch::Contains("write 0"));
  CHECK_THAT(refusal(with("0.0001%")), Catch::Contains("\"0.0001%\" is less than 0.001/s"));
  CHECK_THAT(refusal(with("1/s", "1/h")), Catch::Contains("capacity.metadata: \"1/h\" is less"));
  for (char const* enough : {"0", "0%", "3.6/h", "1/min", "0.001%"})
    CHECK_NOTHROW(policy::parse_policy(with(enough), "p"));
  // A limit that nobody shares is kept exactly.
  CHECK_NOTHROW(policy::parse_policy(R"({"channels": [{"name": "a", "limit": "1/h"}]})", "p"));
}

TEST_CASE("policy: names that command a terminal are refused, and endless ones") {
  auto const target = [](std::string const& name) {
    return R"({"targets": {")" + name + R"(": {"path": "/s"}}})";
  };
  auto const qos = [](std::string const& name) {
    return R"({"classes": {")" + name + R"(": {}}})";
  };
  auto const channel = [](std::string const& name) {
    return R"({"channels": [{"name": ")" + name + R"(", "limit": "1/s"}]})";
  };
  for (char const* bad : {"a\\u0000", "a\\nb", "\\u001b[2J", "a\\u202eb", "\\u009b", "\\u007f"}) {
    for (auto const& text : {target(bad), qos(bad)})
      CHECK_THAT(refusal(text), Catch::Contains("control characters"));
    CHECK(refusal(channel(bad)).find_first_of("\n\x1b") == std::string::npos);
    CHECK_THAT(refusal(channel(bad)), Catch::Contains("name"));
  }
  CHECK_THAT(refusal(target("a\\nb")), Catch::StartsWith("p:1:14: \"a?b\" is no name of a target"));
  std::string const endless(5000, 'x');
  CHECK_THAT(refusal(target(endless)), Catch::Contains("...\" is no name of a target: 1 to 63"));
  CHECK_THAT(refusal(qos(endless)), Catch::Contains("is no name of a class: 1 to 31 bytes"));
  CHECK_THAT(refusal(channel(endless)), Catch::Contains("channels[0].name"));
  CHECK_THAT(refusal(channel(endless.substr(0, 200))), Catch::Contains("1 to 127 bytes"));
  CHECK_THAT(refusal(target("")), Catch::Contains("is no name of a target"));
  for (auto const& text : {target("données"), qos("größe"), channel("日誌 1")})
    CHECK_NOTHROW(policy::parse_policy(text, "p"));
}

TEST_CASE("a policy has no more supplies than daemons tell each other", "[policy]") {
  auto const of = [](unsigned targets) {
    std::string text = "{\n\"targets\": {";
    for (unsigned i = 0; i < targets; ++i)
      text += std::string(i == 0 ? "" : ", ") + "\"t" + std::to_string(i) + "\": {\"path\": \"/t" +
              std::to_string(i) + R"(", "capacity": {"data": "1MB/s", "metadata": "9/s"}})";
    return text + "}}";
  };
  unsigned const most = sluice::most_supplies / 2;
  CHECK(refusal(of(most)) == "accepted");
  CHECK_THAT(refusal(of(most + 1)),
             Catch::Contains("p:2:") &&
                 Catch::Contains("targets: 242 capacities in 121 targets, at most 240") &&
                 Catch::Contains("leave out capacities"));
}
