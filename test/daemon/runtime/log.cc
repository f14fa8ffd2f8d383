// SPDX-License-Identifier: Apache-2.0
// Log lines: one per event, whatever a peer put into a name; a flood is cut short and counted.
#include "runtime/log.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace sluice;
using runtime::level;

namespace {

struct listener {
  std::vector<std::string> lines;
  std::int64_t now = 0;
  runtime::logger log{level::info, [this](std::string_view line) { lines.emplace_back(line); },
                      [this] { return now; }};
};

}  // namespace

TEST_CASE("control log: values of every kind") {
  listener l;
  std::string const text = "x y";
  l.log.info("made", {{"job", "hydro"},
                      {"n", 7},
                      {"big", ~0ull},
                      {"is", true},
                      {"part", 0.25},
                      {"text", text},
                      {"view", std::string_view("v")},
                      {"none", ""}});
  REQUIRE(l.lines.size() == 1);
  CHECK(l.lines[0] ==
        "info made job=hydro n=7 big=18446744073709551615 is=yes part=0.25 text=\"x y\" view=v "
        "none=\"\"");
}

TEST_CASE("control log: nothing in a value ends the line or the value") {
  listener l;
  l.log.warning("peer", {{"name", "a\nerror forged b=\"c\\\x1b[2J"}});
  l.log.info("peer", {{"name",
                       "\xc2\x9b"
                       "2J"},
                      {"other", "\xc3\x9b"}});
  CHECK(l.lines.at(1) == "info peer name=\"\xc2\\x9b2J\" other=\xc3\x9b");
  CHECK(l.lines.at(0) == "warning peer name=\"a\\nerror forged b=\\\"c\\\\\\x1b[2J\"");
}

TEST_CASE("control log: levels") {
  listener l;
  l.log.debug("hidden");
  CHECK(l.lines.empty());
  CHECK(!l.log.shows(level::debug));
  l.log.set_level(level::debug);
  l.log.debug("shown");
  CHECK(l.lines.size() == 1);
  CHECK(l.log.count(level::debug) == 2);
  CHECK(runtime::parse_level("warning") == level::warning);
  CHECK_THROWS_WITH(runtime::parse_level("warnin"), Catch::Contains("did you mean \"warning\"?"));
}

TEST_CASE("control log: a flood of one event is cut short, others pass") {
  listener l;
  for (int i = 0; i < 1000; ++i) l.log.warning("refused", {{"peer", i}});
  std::size_t const before = l.lines.size();
  CHECK(before < 50);
  CHECK(before > 0);
  l.log.warning("other");
  CHECK(l.lines.size() == before + 1);
  l.now += 60'000'000'000;
  l.log.warning("refused", {{"peer", 1000}});
  REQUIRE(l.lines.size() == before + 2);
  CHECK(l.lines.back() ==
        "warning refused peer=1000 left_out_before=" + std::to_string(1000 - before));
  CHECK(l.log.count(level::warning) == 1002);
}
