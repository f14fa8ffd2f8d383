// SPDX-License-Identifier: Apache-2.0
// The CSV form of a trace: what is written is read back, both forms mean the same, and a wrong file
// is refused with its line.
#include <catch2/catch.hpp>
#include <sstream>

#include "base/error.h"
#include "commands/trace/trace.h"

using namespace sluice;
using trace::column;

namespace {

trace::trace parse(std::string const& text) {
  std::istringstream from(text);
  return trace::read(from, "t.csv");
}

std::string refusal(std::string const& text) {
  try {
    parse(text);
  } catch (error const& e) {
    CHECK(e.status() == exit_usage);
    return e.what();
  }
  return "accepted";
}

unsigned op(char const* name) { return trace::find_op(name).value(); }

std::string written(trace::trace const& t, trace::form f) {
  std::ostringstream to;
  trace::write(t, to, f);
  return to.str();
}

}  // namespace

TEST_CASE("trace: every op of ops.def but the local ones is counted by one row", "[trace]") {
  for (auto const& row : core::op_table) {
    INFO(row.name);
    bool const silent = row.cls == core::call_class::local || row.cls == core::call_class::mapping;
    CHECK(trace::find_op(row.name).has_value() != silent);
  }
  CHECK(trace::op_table[op("fstat")].name == "getattr");
  CHECK(trace::op_table[op("read")].counts_bytes());
  CHECK_FALSE(trace::op_table[op("sync")].counts_bytes());
}

TEST_CASE("trace: no alias stands in two rows", "[trace]") {
  std::vector<std::string> all;
  for (auto const& row : trace::op_table) {
    std::istringstream words{std::string(row.aliases)};
    for (std::string word; words >> word;) {
      INFO(word);
      if (word != row.name) {
        CHECK(std::find(all.begin(), all.end(), word) == all.end());
      }
      all.push_back(word);
      CHECK(trace::op_table[op(word.c_str())].name == row.name);
    }
  }
}

TEST_CASE("trace: wide rows", "[trace]") {
  auto const t = parse(
      "# title: two minutes\n# licence: CC0\n# interval: 60s\n"
      "time_s,open,stat,read_bytes\n0,10,20.5,4096\n60,0,1,0\n");
  CHECK(t.interval_s == 60);
  CHECK(t.start_unix_s == 0);
  CHECK(t.fact("title") == "two minutes");
  CHECK(t.fact("licence") == "CC0");
  REQUIRE(t.columns ==
          std::vector<column>{{"", op("open")}, {"", op("getattr")}, {"", op("read")}});
  CHECK(t.counts == std::vector<std::vector<double>>{{10, 20.5, 4096}, {0, 1, 0}});
  CHECK(t.duration_s() == 120);
}

TEST_CASE("trace: long rows with jobs; the interval is that of the first two times", "[trace]") {
  auto const t = parse(
      "time_s,op,count,job\r\n1700000000,open,1,a\r\n1700000000,open,2,b\r\n"
      "1700000010,open,3,b\r\n1700000030,open,4,b\r\n1700000030,open,5,b\r\n");
  CHECK(t.interval_s == 10);
  CHECK(t.start_unix_s == 1700000000);
  CHECK(t.jobs() == std::vector<std::string>{"a", "b"});
  CHECK(t.counts == std::vector<std::vector<double>>{{1, 2}, {0, 3}, {0, 0}, {0, 9}});
}

TEST_CASE("trace: per-second counts, summed labels, several columns of one op", "[trace]") {
  auto const t = parse(
      "# counts: per second\n# interval: 10s\ntime_s,stat,access,mdt\n0,1,2,m0\n0,3,4,m1\n"
      "10,1,0,m0\n");
  REQUIRE(t.columns.size() == 1);
  CHECK(t.counts == std::vector<std::vector<double>>{{100}, {10}});
}

TEST_CASE("trace: what is written is read back, in both forms", "[trace]") {
  auto const t = parse(
      "# title: x\n# note: one\n# note: two\n# interval: 500ms\n# start_unix_s: 1700000000.25\n"
      "time_s,open,write,job\n0,0,0,a\n0,1,1e15,b c\n0.5,0.125,2,a\n1.5,0,0,a\n");
  for (auto const f : {trace::form::wide, trace::form::long_rows}) {
    auto const again = parse(written(t, f));
    CHECK(again.columns == t.columns);
    CHECK(again.counts == t.counts);
    CHECK(again.facts == t.facts);
    CHECK(again.interval_s == t.interval_s);
    CHECK(again.start_unix_s == t.start_unix_s);
  }
}

TEST_CASE("trace: a wrong file is refused with its line", "[trace]") {
  auto const wrong = [](std::string const& text, std::string const& wanted) {
    std::string const got = refusal(text);
    INFO(got);
    CHECK(got.find(wanted) == 0);
  };
  std::string const head = "# interval: 1s\ntime_s,open\n";
  wrong("", "t.csv:1: no columns");
  wrong(head, "t.csv:2: no rows");
  wrong("a,b\n", "t.csv:1: unknown column \"a\"");
  wrong("time_s,opne\n", "t.csv:1: unknown column \"opne\"; did you mean \"open\"?");
  wrong("time_s,open,open\n", "t.csv:1: the column \"open\" is there twice");
  wrong("time_s,time,open\n", "t.csv:1: \"time\" is a second column");
  wrong("open\n", "t.csv:1: no column of times");
  wrong("time_s,op\n", "t.csv:1: op and count go together");
  wrong("time_s,op,count,open\n", "t.csv:1: either op and count");
  wrong("time_s,job\n", "t.csv:1: no operation is counted");
  wrong(head + "0,1\n1\n", "t.csv:4: 1 cells where the columns are 2; was the line cut?");
  wrong(head + "0,-1\n", "t.csv:3: open is -1: a count is never negative");
  wrong(head + "0,nan\n", "t.csv:3: the count is \"nan\"; write a number");
  wrong(head + "0,inf\n", "t.csv:3: the count is \"inf\"");
  wrong(head + "0,1e300\n", "t.csv:3: open is 1e300: more than 1e+18");
  wrong(head + "0,\n", "t.csv:3: the count is \"\"");
  wrong(head + "x,1\n", "t.csv:3: the time is \"x\"");
  wrong(head + "2,1\n1,1\n", "t.csv:4: time 1 after 2: out of order");
  wrong(head + "0,1\n1.5,1\n", "t.csv:4: time 1.5 is no multiple of the interval of 1 s");
  wrong(head + "0,1\n4194304,1\n", "t.csv:4: the trace would have more than 4194304 intervals");
  wrong("time_s,open\n0,1\n", "t.csv:2: one time only and no interval");
  wrong("time_s,op,count\n0,poen,1\n", "t.csv:2: unknown operation \"poen\"");
  wrong("# interval: 5\n", "t.csv:1: the interval is \"5\"; write a time like 60s");
  wrong("# interval: 0s\n", "t.csv:1: the interval is \"0s\"");
  wrong("# counts: per hour\n", "t.csv:1: counts are \"per hour\"");
  wrong("# intervals: 3\n" + head + "0,1\n1,1\n", "t.csv:5: the file ends in interval 2 of 3");
  wrong("# intervals: 2\n" + head + "0,1\n1,1", "t.csv:5: the file ends in interval 2 of 2");
  wrong(std::string("time_s,open\n0,1\0\n", 17), "t.csv:2: byte 0x00 in column 4");
  wrong("time_s,open,job\n0,1,\"a\n", "t.csv:2: a quote is not closed");
  wrong("time_s,open,job\n0,1," + std::string(64, 'j') + "\n", "t.csv:2: the job ");
  wrong(std::string(2u << 20, 'a'), "t.csv:1: the line is longer than 1 MiB");
}

TEST_CASE("trace: jobs beyond the limit are refused", "[trace]") {
  std::string text = "# interval: 1s\ntime_s,op,count,job\n";
  for (std::size_t i = 0; i <= trace::most_columns; ++i)
    text += "0,open,1,j" + std::to_string(i) + "\n";
  CHECK(refusal(text).find("t.csv:8195: more than 8192 columns") == 0);
}
