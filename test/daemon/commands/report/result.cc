// SPDX-License-Identifier: Apache-2.0
// Result files: what is read, what is passed over, and that each mistake is shown with its line.
#include "commands/report/result.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "commands/report/place.h"
#include "lib/refusal.h"

using namespace sluice;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

constexpr char const* full = R"({
  "version": 1,
  "kind": "replay",
  "job": "hydro", "command": ["./app", "-x"], "exit": {"code": 3}, "elapsed_s": 12.5,
  "processes": {"attached": 4, "running": 0},
  "channels": [{"name": "metadata@scratch", "unit": "ops", "rate_per_s": 100, "target": null,
                "calls": 1000, "amount": 1000, "delayed": 900, "waited_ns": 2500000000}],
  "calls": [{"call": "open64", "op": "open", "class": "metadata", "calls": 7, "waited_ns": 5}],
  "paths": [{"path": "/scratch/a", "calls": 7}],
  "passthrough": [{"reason": "early", "calls": 2}],
  "gathered": {"writes": 0, "why_none": "it was late"},
  "hints": {"advised": 3, "advised_bytes": 12288, "cached": 4, "unpaid": 5},
  "timeline": {"start_unix_s": 1700000000, "interval_s": 2, "rows": [
    {"job": "hydro", "op": "open", "what": "done", "unit": "ops", "values": [1, null, 2.5]},
    {"job": "hydro", "supply": "metadata@scratch", "what": "served", "values": [4]},
    {"channel": "slow", "what": "limit", "values": []},
    {"what": "lag", "unit": "s", "values": [0, 0]}]},
  "jobs": [{"job": "hydro", "class": "gold", "started_s": 0, "ended_s": 5, "finished": true}],
  "rules": [{"channel": "slow", "text": "at most", "file": "p.json", "line": 7, "rate_per_s": 5}],
  "facts": [["source", "generated"]],
  "of a later version": {"x": [1, {"y": null}]}
})";

std::string refusal(std::string const& text) {
  return test::refusal_of([&] { report::parse_result(text, "r.json"); });
}

}  // namespace

TEST_CASE("report: a result with everything in it", "[report]") {
  auto const r = report::parse_result(full, "r.json");
  CHECK(r.kind == "replay");
  CHECK(r.job == "hydro");
  CHECK(r.command.size() == 2);
  CHECK(r.exit_code == 3);
  CHECK_FALSE(r.exit_signal);
  CHECK(r.elapsed_s == 12.5);
  REQUIRE(r.channels.size() == 1);
  CHECK(r.channels[0].waited_s == 2.5);
  CHECK(r.channels[0].target.empty());
  CHECK(r.calls.at(0).calls == 7);
  CHECK(r.paths.at(0).path == "/scratch/a");
  CHECK(r.passthrough.at(0).second == 2);
  REQUIRE(r.hints);
  CHECK(r.hints->advised == 3);
  CHECK(r.hints->advised_bytes == 12288);
  CHECK(r.hints->cached == 4);
  CHECK(r.hints->unpaid == 5);
  REQUIRE(r.gathered);
  CHECK(r.gathered->why_none == "it was late");
  CHECK(r.time.start_unix_s == 1700000000);
  CHECK(r.time.interval_s == 2);
  CHECK(r.time.intervals == 3);
  REQUIRE(r.time.rows.size() == 4);
  CHECK(r.time.rows[0].about == report::subject::op);
  CHECK(std::isnan(r.time.rows[0].values[1]));
  CHECK(r.time.rows[1].about == report::subject::supply);
  CHECK(r.time.rows[2].about == report::subject::channel);
  CHECK(r.time.rows[3].about == report::subject::job);
  CHECK(r.jobs.at(0).finished == true);
  CHECK(r.rules.at(0).line == 7);
  CHECK(r.facts.at(0).second == "generated");
}

TEST_CASE("report: a result without a timeline, as of the first version", "[report]") {
  auto const r = report::parse_result(R"({"version": 1, "job": "a", "calls": []})", "r.json");
  CHECK(r.kind == "run");
  CHECK(r.time.rows.empty());
  CHECK(std::isnan(r.elapsed_s));
}

TEST_CASE("report: every mistake has its line", "[report]") {
  CHECK_THAT(refusal(""), Equals("r.json:1: the file is empty"));
  CHECK_THAT(refusal("[1]"), Contains("r.json:1: not a result of sluice: wanted an object"));
  CHECK_THAT(refusal("{}"), Equals("r.json:1: \"version\" is missing"));
  CHECK_THAT(refusal("{\n\"version\": 2}"), Equals("r.json:2: version: 2: this sluice reads "
                                                   "version 1"));
  CHECK_THAT(refusal("{\"version\": 1,\n \"job\":\n 5\n}"),
             Equals("r.json:3: job: wanted a string, there is a number"));
  CHECK_THAT(refusal("{\"version\": 1,\n\"kind\": \"walk\"}"),
             Contains("r.json:2: kind: \"walk\""));
  CHECK_THAT(refusal("{\"version\": 1,\n\"timeline\": {\"rows\": [\n"
                     "{\"what\": \"done\", \"values\": [1,\n2,\n-3\n]}]}}"),
             Equals("r.json:5: timeline.rows[0].values[2]: -3 is no amount: wanted a number from 0 "
                    "on"));
  CHECK_THAT(refusal("{\"version\": 1,\n\"timeline\": {\"rows\": [\n{\"values\": []}]}}"),
             Equals("r.json:3: timeline.rows[0]: \"what\" is missing"));
  CHECK_THAT(refusal("{\"version\": 1, \"timeline\": {\"rows\": [{\"what\": \"done\", \"values\": "
                     "[], \"op\": \"a\",\n\"supply\": \"b\"}]}}"),
             Equals("r.json:2: timeline.rows[0].supply: a row has one of op, supply, channel"));
  CHECK_THAT(refusal("{\"version\": 1, \"timeline\": {\"interval_s\": 0}}"), Contains("no length"));
  CHECK_THAT(refusal("{\"version\": 1, \"facts\": [[\"a\"]]}"), Contains("facts[0]: a fact is"));
}

TEST_CASE("report: what is no JSON has line and column", "[report]") {
  CHECK_THAT(refusal("{\"version\": 1,\n  \"job\": \"a\",\n  }"),
             Contains("r.json:3:3: not JSON: "));
  CHECK_THAT(refusal("{\"version\": 1,\n\"job\": \"a\xff\"}"), Contains("r.json:2:"));
  CHECK_THAT(refusal("{\"version\": 1,\n\n\"elapsed_s\": 1e999}"), Contains("r.json:3:"));
  CHECK_THAT(refusal("{\"version\": 1,\n\"job"), Contains("r.json:2:"));
  CHECK_THAT(refusal("PK\x03\x04"), Contains("r.json:1:1: not JSON"));
  CHECK_THAT(refusal("{\"version\": 1,\n\"\\n\": 1, x}"), Contains("r.json:2:"));
}

TEST_CASE("report: the line of a value is found", "[report]") {
  std::string const text = "{\"a\":\n[1,\n{\"b\": null},\n3\n]}";
  CHECK(report::line_of(text, {}) == 1);
  CHECK(report::line_of(text, {"a"}) == 2);
  CHECK(report::line_of(text, {"a", std::size_t{0}}) == 2);
  CHECK(report::line_of(text, {"a", std::size_t{1}, "b"}) == 3);
  CHECK(report::line_of(text, {"a", std::size_t{2}}) == 4);
  CHECK(report::line_of(text, {"a", std::size_t{3}}) == 0);
  CHECK(report::path_text({"a", std::size_t{1}, "b"}) == "a[1].b");
}
