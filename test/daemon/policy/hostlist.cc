// SPDX-License-Identifier: Apache-2.0
// Durations and lists of hosts as people write them.
#include <catch2/catch.hpp>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "policy/hostlist.h"

using namespace sluice;
using names = std::vector<std::string>;

namespace {

std::int64_t duration(std::string_view text) { return parse_duration(text, "here"); }
names hosts(std::string_view text) { return policy::expand_hostlist(text, "here"); }

}  // namespace

TEST_CASE("duration: units and decimals") {
  CHECK(duration("100ms") == 100'000'000);
  CHECK(duration("1.5s") == 1'500'000'000);
  CHECK(duration("10m") == duration("10min"));
  CHECK(duration("2h") == 7'200'000'000'000);
  CHECK(duration("0s") == 0);
  for (char const* wrong : {"", "5", "s", "-1s", "1.s5", "1,5s", "1 s", "1S", "9999999999h",
                            "99999999999999999999999999999999999999999999ns", ".5s"})
    CHECK_THROWS_AS(duration(wrong), error);
  CHECK_THROWS_WITH(duration("5x"), Catch::Contains("here: \"5x\": unknown unit \"x\""));
}

TEST_CASE("duration: what is written can be read") {
  for (char const* text : {"100ms", "1.5s", "10min", "2h", "1d", "250us", "1ns"})
    CHECK(duration_text(duration(text)) == text);
  CHECK(duration_text(0) == "0s");
}

TEST_CASE("duration: until when, as a time of day and how long that is") {
  CHECK(until_text(0, 5) == "until it is changed");
  CHECK_THAT(until_text(1'795'406'678, 1'795'406'079),
             Catch::StartsWith("until 2026-11-2") && Catch::EndsWith(" (9.98min more)"));
  CHECK_THAT(until_text(100, 200), Catch::EndsWith(" (0s more)"));
  CHECK_THAT(until_text(103.5, 100.5), Catch::EndsWith(" (3s more)"));
}

TEST_CASE("hostlist: ranges, lists, zeros, several brackets") {
  CHECK(hosts("n1") == names{"n1"});
  CHECK(hosts("n[1-3],login1") == names{"n1", "n2", "n3", "login1"});
  CHECK(hosts("n[08-10]") == names{"n08", "n09", "n10"});
  CHECK(hosts("n[1,3,5-6]x") == names{"n1x", "n3x", "n5x", "n6x"});
  CHECK(hosts("r[1-2]n[1-2]") == names{"r1n1", "r1n2", "r2n1", "r2n2"});
  CHECK(hosts("n[0-65535]").size() == 65536);
}

TEST_CASE("hostlist: refusals") {
  CHECK_THROWS_WITH(hosts(""), Catch::Contains("names no node"));
  CHECK_THROWS_WITH(hosts("a,,b"), Catch::Contains("empty name"));
  CHECK_THROWS_WITH(hosts("a,"), Catch::Contains("ends with a comma"));
  CHECK_THROWS_WITH(hosts("n[1-3"), Catch::Contains("does not close it"));
  CHECK_THROWS_WITH(hosts("n1-3]"), Catch::Contains("was not opened"));
  CHECK_THROWS_WITH(hosts("n[[1]]"), Catch::Contains("opens a bracket twice"));
  CHECK_THROWS_WITH(hosts("n[3-1]"), Catch::Contains("counts backwards"));
  CHECK_THROWS_WITH(hosts("n[]"), Catch::Contains("empty brackets"));
  CHECK_THROWS_WITH(hosts("n[a]"), Catch::Contains("where a number belongs"));
  CHECK_THROWS_WITH(hosts("n[1-]"), Catch::Contains("where a number belongs"));
  CHECK_THROWS_WITH(hosts("n1,n[1-2]"), Catch::Contains("names n1 twice"));
  CHECK_THROWS_WITH(hosts("a b"), Catch::Contains("a letter that names do not have"));
  CHECK_THROWS_WITH(hosts("n[0-65536]"), Catch::Contains("more than 65536"));
  CHECK_THROWS_WITH(hosts("a[0-999]b[0-999]"), Catch::Contains("more than 65536"));
  CHECK_THROWS_WITH(hosts("n[0-99999999999999999999]"), Catch::Contains("where a number"));
  CHECK_THROWS_WITH(hosts(std::string(64, 'a')), Catch::Contains("more than 63 letters"));
}
