// SPDX-License-Identifier: Apache-2.0
// What a trace says of itself is shown, and commands nothing. Its file may be anybody's.
#include "commands/trace/info.h"

#include <catch2/catch.hpp>
#include <sstream>

using namespace sluice;

TEST_CASE("trace: no words of it command a terminal", "[trace]") {
  std::string const commands = "\u009b31m \u202e \x1b[2J \x7f";
  std::string const harmless = "\xc2?31m ??\? ?[2J ?";
  std::istringstream from("# source: " + commands + "\n# interval: 1s\ntime_s,open\n0,1\n");
  trace::trace const t = trace::read(from, "t.csv");
  std::string const table = trace::info_table(t, commands, trace::spark::none);
  CHECK_THAT(table, Catch::StartsWith(harmless + ": "));
  CHECK_THAT(table, Catch::Contains("source: " + harmless + "\n"));
  std::ostringstream to;
  trace::write(t, to, trace::form::wide);
  CHECK_THAT(to.str(), Catch::Contains("# source: " + harmless + "\n"));
}
