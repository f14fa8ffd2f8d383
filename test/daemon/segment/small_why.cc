// SPDX-License-Identifier: Apache-2.0
// Each reason why nothing came of small I/O has its words, and none is given that may be wrong.
#include "segment/small_why.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace sluice;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using json = nlohmann::ordered_json;

namespace {

std::string why(segment::small_calls calls, json const& counted = json::object()) {
  calls.is_reached = true;
  return segment::why_none(counted, segment::writes_habit(true, false), calls);
}

}  // namespace

TEST_CASE("small why: calls that nobody looked at") {
  CHECK_THAT(segment::why_none(json::object(), segment::reads_habit(), {}),
             Equals("no process could be limited"));
  CHECK_THAT(why({}), Equals("nothing was seen to be written"));
  CHECK_THAT(why({.others = 9}), Equals("all was written by other calls than write(2)"));
  CHECK_THAT(why({.own = 900}), Equals("nothing was written in its directories, or too little "
                                       "for a sample of the calls to show"));
  CHECK_THAT(why({.own = 900, .timed = 7}), Contains("no write was small enough (16 KiB at most)"));
  CHECK_THAT(why({.own = 900, .timed = 7, .timed_at_most = 7}),
             Equals("no write was below 16 KiB, and few or none had just that: larger ones are not "
                    "taken"));
  CHECK_THAT(why({.own = 5, .timed = 7, .timed_and_small = 1}),
             Equals("only 5 were made: it begins after 32 small ones in a row on a file"));
  CHECK_THAT(why({.own = 900, .timed = 7, .timed_and_small = 1}), Contains("none had the habit"));
  auto const both = segment::writes_habit(true, true);
  CHECK_THAT(both.but, Equals(", and 128 on a strict one"));
  CHECK(segment::writes_habit(false, true).in_a_row == 128);
}

TEST_CASE("small why: what was refused, and leases that did not help") {
  segment::small_calls const many = {.own = 900, .timed = 7, .timed_and_small = 1};
  CHECK_THAT(why(many, {{"refused_shared", 1}, {"refused_kind", 2}, {"refused_lease", 0}}),
             Equals("1 look: others may share the file; 2 looks: it is no plain file, is open with "
                    "O_SYNC, O_DIRECT or the like, or is on a file system that does not fit; or "
                    "files are limited (ulimit -f), or the program was linked with liburing or "
                    "libaio, or another library has a read or write of its own"));
  CHECK_THAT(why(many, {{"leases", 1}}),
             Equals("a lease was asked for, but came too late or was ended at once"));
  CHECK_THAT(why(many, {{"held", 1}}), Equals("what waited was lost, as the program was killed"));
  CHECK_THAT(why(many, {{"leases", 1}, {"held", 1}}),
             Equals("the program was killed, and the keepers have written what waited on strict "
                    "files; elsewhere it was lost"));
  segment::small_calls killed = many;
  killed.is_reached = true;
  CHECK_THAT(
      segment::why_none({{"leases", 1}, {"held", 1}}, segment::writes_habit(false, true), killed),
      Equals("the program was killed, and the keepers have written what waited"));
  CHECK_THAT(why(many, {{"held", 2}, {"let_go", 2}}), Contains("none had the habit"));
  CHECK_THAT(why(many, {{"leases", 2}, {"refused_lease", 2}}),
             Equals("2 looks: nobody could hold a lease"));
}

TEST_CASE("small why: where it ended for a while") {
  using enum segment::small_calls_of;
  json const counted = {{"ended_slow", 1}, {"ended_asked", 0}, {"ended_memory", 5}};
  auto const all = segment::endings(counted, writes);
  REQUIRE(all.size() == 2);
  CHECK_THAT(all[0], Equals("ended once, as they came too slowly"));
  CHECK_THAT(all[1], Equals("ended 5 times, as they came from memory that libc may unmap"));
  CHECK(segment::endings({{"ended_asked", "x"}, {"ended_memory", -1}}, reads).empty());
  CHECK(segment::endings(5, reads).empty());
}

TEST_CASE("small why: what runs may still write out what waits") {
  segment::small_calls running = {.is_running = true, .own = 32, .timed = 7, .timed_and_small = 1};
  CHECK_THAT(why(running), Equals("nothing has come of it yet"));
  running.own = 5;
  CHECK_THAT(why(running), Contains("only 5 were made"));
  CHECK_THAT(why(running, {{"leases", 1}}), Equals("nothing has come of it yet"));
}

TEST_CASE("small why: no advice") {
  CHECK_THAT(segment::why_no_hints(json::object(), true),
             Equals("no small overwrites or strided reads were seen"));
  CHECK_THAT(segment::why_no_hints({{"cached", 3}, {"unpaid", 1}}, true),
             Equals("3 times nothing was to be read from the disk; once the limit had nothing to "
                    "spare"));
}
