// SPDX-License-Identifier: Apache-2.0
// Background work that a class holds back, as a policy writes it: what is refused, what follows
// where something is not written, the channels that it needs, and the words for it.
#include "policy/background.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "lib/policy_refusal.h"
#include "policy/change.h"
#include "policy/compile.h"
#include "policy/control.h"
#include "policy/policy.h"

using namespace sluice;
using Catch::Contains;
using sluice::test::refusal;

namespace {

std::string with(std::string const& share, std::string const& capacity = "",
                 std::string const& roles = R"("flush": {"thread": "a"}, "compaction-low":
                 {"thread": "b"}, "compaction-high": {"thread": "c"}, "foreground": {"rest": true}
                 )") {
  return R"({"roles": {"db": {)" + roles + R"(}}, "targets": {"s": {"path": "/s", "capacity": {)" +
         capacity + R"(}}}, "classes": {"kv": {"s": {"data": {)" + share + R"(}}}}})";
}

std::string refusal_with(std::string const& share, std::string const& capacity = "") {
  return refusal(with(share, capacity));
}

policy::background_terms terms_of(std::string const& text) {
  return policy::backgrounds_of(policy::parse_policy(text, "p"), "kv").at(0);
}

constexpr char const* written = R"("algorithm": "tail-latency", "foreground": "30MiB/s",
                                   "floor": "3MiB/s", "limit": "60MiB/s")";
constexpr std::uint64_t mib = 1048576ull * 1000;

}  // namespace

TEST_CASE("background policy: what is written") {
  auto const t = terms_of(with(written));
  CHECK(t.supply == "data@s");
  CHECK(t.total == 60 * mib);
  CHECK(t.foreground == 30 * mib);
  CHECK(t.floor == 3 * mib);
  CHECK(t.channels[0] == "data:flush@s");
  CHECK(t.channels[1] == "data:compaction-low@s");
  CHECK(t.channels[2] == "data:compaction-high@s");
  CHECK(
      policy::background_in_words(t) ==
      "background work by tail-latency: up to 30MiB/s of 60MiB/s is kept free for the foreground, "
      "flush, compaction-low, compaction-high have the rest and at least 3MiB/s each");
}

TEST_CASE("background policy: what is not written follows from what there is") {
  auto const t = terms_of(with(R"("algorithm": "tail-latency")", R"("data": "100MiB/s")"));
  CHECK(t.total == 100 * mib);
  CHECK(t.floor == 5 * mib);
  CHECK(t.foreground == 95 * mib);
}

TEST_CASE("background policy: roles may have other names, or be missing") {
  std::string const roles = R"("writer": {"thread": "w"}, "rest": {"rest": true})";
  auto const t = terms_of(
      with(R"("algorithm": "paio-2022", "limit": "60MiB/s", "low": "db.writer")", "", roles));
  CHECK(t.channels[0].empty());
  CHECK(t.channels[1] == "data:db.writer@s");
  CHECK(t.channels[2].empty());
  CHECK_THAT(policy::background_in_words(t),
             Contains("what the foreground uses of 60MiB/s is kept free") &&
                 Contains("db.writer has the rest and at least 3MiB/s"));
}

TEST_CASE("background policy: what is refused, and why") {
  auto const also = [](std::string const& more) { return refusal_with(written + (", " + more)); };
  CHECK_THAT(refusal_with(R"("limit": "60MiB/s", "floor": "1MiB/s")"),
             Contains("classes.kv.s.data.floor says nothing without an \"algorithm\""));
  CHECK_THAT(refusal_with(R"("algorithm": "tail-latenzy")"),
             Contains("unknown classes.kv.s.data.algorithm") && Contains("tail-latency"));
  CHECK_THAT(refusal_with(R"("algorithm": "tail-latency")"),
             Contains("is not known: write a \"limit\" here, or a capacity"));
  CHECK_THAT(refusal_with(R"("algorithm": "tail-latency")",
                          R"("data": {"auto": true, "max": "1GiB/s", "latency": "5ms"})"),
             Contains("a capacity of the target that does not move"));
  CHECK_THAT(also(R"("flush": "flash")"),
             Contains("there is no role \"flash\"") && Contains("db.flush"));
  CHECK_THAT(also(R"("high": "compaction-low")"), Contains("is two kinds of background work"));
  CHECK_THAT(refusal_with(R"("algorithm": "tail-latency", "limit": "60MiB/s", "floor": "0")"),
             Contains(".floor is 0"));
  CHECK_THAT(refusal_with(R"("algorithm": "tail-latency", "limit": "60MiB/s", "floor": "60MiB/s")"),
             Contains("a floor of 60MiB/s leaves nothing of the 60MiB/s"));
  CHECK_THAT(
      refusal_with(R"("algorithm": "tail-latency", "limit": "60MiB/s", "floor": "6MiB/s",
                              "foreground": "55MiB/s")"),
      Contains("55MiB/s for the foreground and a floor of 6MiB/s are more than the 60MiB/s"));
  CHECK_THAT(refusal_with(R"("algorithm": "silk-2019", "limit": "60MiB/s",
                              "foreground": "5MiB/s")"),
             Contains("says nothing to silk-2019"));
  CHECK_THAT(refusal(with(written, "", R"("other": {"rest": true})")),
             Contains("has no role to hold back"));
  CHECK_THAT(refusal(R"({"targets": {"s": {"path": "/s"}}, "classes": {"kv": {"s":
                            {"metadata": {"algorithm": "tail-latency", "limit": "1k/s"}}}}})"),
             Contains("by its data only"));
}

TEST_CASE("background policy: its channels limit nothing by themselves") {
  policy::site const s = policy::parse_policy(with(written), "p");
  auto channels = policy::channels_of(s, "kv");
  REQUIRE(channels.size() == 1);  // the limit
  policy::add_background_channels(policy::backgrounds_of(s, "kv"), channels);
  REQUIRE(channels.size() == 5);
  for (std::size_t i = 1; i < 5; ++i) {
    CHECK(channels[i].role.empty() == (i == 4));
    CHECK(policy::rate_text(channels[i].amount.unit, channels[i].amount.rate_q40) == "no limit");
  }
  std::vector<policy::channel_spec> none;
  policy::add_background_channels(policy::backgrounds_of(s, "kv"), none);
  REQUIRE(none.size() == 4);
  CHECK(none[3].besides == std::vector<std::string>{"flush", "compaction-low", "compaction-high"});
  policy::add_background_channels(policy::backgrounds_of(s, "other"), none);
  CHECK(none.size() == 4);
}

TEST_CASE("background policy: all other roles are its foreground, and what has none") {
  policy::site const s = policy::parse_policy(with(written), "p");
  policy::compile_input input;
  input.roles = s.roles;
  policy::add_background_channels(policy::backgrounds_of(s, "kv"), input.channels);
  for (auto& c : input.channels) c.target.clear();
  auto const c = policy::compile(input, policy::this_machine());
  auto const of = [&](unsigned role) {
    std::vector<std::string> names;
    for (unsigned r = 0; r < c.rules->rule_count; ++r)
      if ((c.roles->rules_of[role] >> r & 1) != 0)
        names.emplace_back(core::view(*c.rules, c.rules->channel[c.rules->rule[r].channel].name));
    return names;
  };
  using names = std::vector<std::string>;
  CHECK(of(0) == names{"data:flush@s"});
  CHECK(of(2) == names{"data:compaction-high@s"});
  CHECK(of(3) == names{"data:(foreground)@s"});
  CHECK(of(core::max_roles) == names{"data:(foreground)@s"});
}

TEST_CASE("background policy: a change is told, and what is for comparison warned of") {
  policy::site const from =
      policy::parse_policy(with(R"("limit": "60MiB/s")", R"("data": "90MiB/s")"), "p");
  policy::site const to = policy::parse_policy(
      with(R"("algorithm": "silk-2019", "limit": "60MiB/s")", R"("data": "90MiB/s")"), "p");
  std::string all;
  for (auto const& line : policy::changes(from, to)) all += line + "\n";
  CHECK_THAT(all, Contains("background work of class kv on data@s: not held back -> background "
                           "work by silk-2019"));
  std::string warned;
  for (auto const& line : policy::warnings(to)) warned += line + "\n";
  CHECK_THAT(warned, Contains("class kv: silk-2019 is not meant for production"));
}
