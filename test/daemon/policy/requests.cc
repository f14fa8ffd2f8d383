// SPDX-License-Identifier: Apache-2.0
// Requests that a policy defines and promises: what is refused, what they come to, the channels
// that count them, and the words for them.
#include "policy/requests.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "lib/policy_refusal.h"
#include "policy/control.h"
#include "policy/policy.h"
#include "policy/supply.h"

using namespace sluice;
using Catch::Contains;
using sluice::test::refusal;

namespace {

constexpr char const* usual = R"("get": {"call": "read", "role": "foreground"},
  "put": {"call": "write", "role": "log", "size": "1KiB", "causes": ["flush", "compaction"]})";

std::string with(std::string const& share, std::string const& requests = usual,
                 std::string const& resource = "vops") {
  nlohmann::json const cost = nlohmann::json::parse(R"({"version": 1, "max_vops": 800,
    "provisionable_vops": 400, "read": [[4096, 1], [65536, 4]],
    "write": [[1024, 0.5], [4096, 1], [65536, 4]]})");
  return R"({"roles": {"db": {"flush": {"thread": "f"}, "compaction": {"thread": "c"},
    "log": {"path": "*.log"}, "foreground": {"rest": true}}}, "requests": {)" +
         requests + R"(}, "targets": {"s": {"path": "/s", "cost": )" +
         nlohmann::json(cost.dump()).dump() +
         R"(, "capacity": {"vops": "calibrated"}}}, "classes": {"kv": {"s": {")" + resource +
         R"(": {)" + share + R"(}}}}})";
}

std::string refusal_with(std::string const& requests) {
  return refusal(with(R"("requests": {"get": "10/s"})", requests));
}

policy::request_terms terms_of(std::string const& share) {
  return policy::promises_of(policy::parse_policy(with(share), "p"), "kv").at(0);
}

}  // namespace

TEST_CASE("policy requests: a promise is reserved as what they cost alone, until more is known") {
  auto const s = policy::parse_policy(with(R"("requests": {"get": "100/s", "put": "40/s"})"), "p");
  auto const share = policy::share_of(s, "kv", policy::supplies(s).at(0));
  REQUIRE(share);
  CHECK(policy::milli_per_second(*share->reservation) == Approx(120'000).epsilon(0.001));
  auto const terms = policy::promises_of(s, "kv").at(0);
  CHECK(terms.supply == "vops@s");
  CHECK(!terms.has_most);
  CHECK(terms.promised[0].first_vops == 1);
  CHECK(terms.promised[1].first_vops == 0.5);
}

TEST_CASE("policy requests: a reservation beside them is the most they may come to") {
  auto const t = terms_of(R"("requests": {"get": "100/s"}, "reservation": "50%")");
  CHECK(t.has_most);
  CHECK_THAT(refusal(with(R"("requests": {"get": "300/s"}, "reservation": "50%")")),
             Contains("300 VOP/s even if they cause nothing"));
  CHECK_THAT(refusal(with(R"("requests": {"get": "500/s"})")),
             Contains("500 VOP/s (kv) = 500 VOP/s, 100 VOP/s more than the 400 VOP/s"));
}

TEST_CASE("policy requests: what cannot be is refused") {
  CHECK_THAT(refusal_with(R"("get": {})"), Contains("no \"call\""));
  CHECK_THAT(refusal_with(R"("get": {"call": "raed"})"), Contains("read"));
  CHECK_THAT(refusal_with(R"("get": {"call": "read", "role": "writer"})"), Contains("writer"));
  CHECK_THAT(refusal_with(R"("get": {"call": "stat", "size": "1KiB"})"), Contains("no bytes"));
  for (auto const* size : {"0B", "10", "-1KiB", "1KiB/s", "2GiB", "x"})
    CHECK_THAT(refusal_with(std::string(R"("get": {"call": "read", "size": ")") + size + "\"}"),
               Contains("is not a size like 1KiB"));
  CHECK_THAT(refusal_with(R"("a b": {"call": "read"})"), Contains("no name of a request"));
  CHECK_THAT(refusal_with(R"("get": {"call": "read", "causes": ["flush", "flush"]})"),
             Contains("names flush twice"));
  CHECK_THAT(refusal_with(R"("get": {"call": "read", "casues": []})"), Contains("causes"));
  CHECK_THAT(refusal(with(R"("requests": {"gte": "10/s"})")), Contains("get"));
  CHECK_THAT(refusal(with(R"("requests": {"get": "0"})")), Contains("promises nothing"));
  CHECK_THAT(refusal(with(R"("requests": {"get": "1MB/s"})")), Contains("requests.get"));
  CHECK_THAT(refusal(with(R"("requests": {})")), Contains("promises no request"));
  CHECK_THAT(refusal(with(R"("requests": {"get": "10/s"})", usual, "data")),
             Contains("in VOPs only"));
}

TEST_CASE("policy requests: work that would be counted twice is refused") {
  CHECK_THAT(refusal_with(R"("get": {"call": "read"}, "scan": {"call": ["read", "readdir"]})"),
             Contains("would count the same work"));
  CHECK_THAT(refusal_with(R"("get": {"call": "write", "role": "log", "causes": ["flush"]},
                             "put": {"call": "read", "role": "log", "causes": ["flush"]})"),
             Contains("would count the same work"));
  CHECK_THAT(refusal_with(R"("get": {"call": "write", "role": "flush", "causes": ["flush"]})"),
             Contains("cause itself"));
  CHECK_THAT(refusal_with(R"("get": {"call": "write", "causes": ["flush"]})"),
             Contains("cause itself"));
  CHECK(refusal_with(R"("get": {"call": "read", "role": "log"},
                        "put": {"call": "write", "role": "log"})") == "accepted");
}

TEST_CASE("policy requests: the channels that count them limit nothing") {
  auto const t = terms_of(R"("requests": {"get": "100/s", "put": "40/s"})");
  std::vector<policy::channel_spec> channels;
  policy::add_request_channels({t}, channels);
  REQUIRE(channels.size() == 5);
  CHECK(channels[0].name == "vops:(get)@s");
  CHECK(channels[0].role == "foreground");
  CHECK(channels[2].name == "bytes:(put)@s");
  CHECK(channels[2].role == "log");
  CHECK(channels[3].name == "vops:(put:flush)@s");
  CHECK(channels[4].role == "compaction");
  for (auto const& c : channels) CHECK(policy::is_unlimited(c.amount.unit, c.amount.rate_q40));
  for (auto const& p : t.promised)
    CHECK(policy::is_request_channel(policy::channels_of(t, p.what).own));
  CHECK_FALSE(policy::is_request_channel("vops@scratch"));
}

TEST_CASE("policy requests: in words, and with a warning where nothing bounds them") {
  auto const s = policy::parse_policy(with(R"("requests": {"get": "100/s", "put": "40/s"})"), "p");
  CHECK(policy::request_in_words(s.requests[0]) == "request get: each read of role foreground");
  CHECK(policy::request_in_words(s.requests[1]) ==
        "request put: each 1KiB of write of role log, and causes flush, compaction");
  CHECK(policy::requests_in_words(policy::promises_of(s, "kv").at(0)) ==
        std::vector<std::string>{"100 get/s", "40 put/s"});
  auto const lines = policy::warnings(s);
  CHECK(std::any_of(lines.begin(), lines.end(), [](std::string const& line) {
    return line.find("class kv: its requests on vops@s may come to all") != std::string::npos;
  }));
}
