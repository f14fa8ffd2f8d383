// SPDX-License-Identifier: Apache-2.0
// The book of what people changed by hand.
#include "verbs/views/overrides.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "wire/message.h"

using namespace sluice;
using namespace sluice::verbs;

namespace {

constexpr std::uint32_t uid = 1000;

limit_override limit(rate value, override_mark mark) {
  limit_override l;
  static_cast<override_mark&>(l) = mark;
  l.channel = "metadata@scratch";
  l.value = value;
  return l;
}

constexpr char const* this_boot = "1";

override_book read(std::string const& text, std::string const& boot = this_boot) {
  return override_book::from_text(text, wire::job_key, boot);
}

/// Set when the machine ran for 50 s and its clock showed 1000 s, for 60 s.
override_book paused_for_a_minute() {
  override_book b;
  b.pause(1, uid, "hydro", ends_after({}, 60, {1000, 50}));
  return b;
}

double shown_end(override_book const& b, core::job_id job = 1) {
  return b.find(job)->pause->until_s;
}

}  // namespace

TEST_CASE("overrides end, persist, and an operator's word stands", "[verbs]") {
  core::job_id const job = wire::job_key(uid, "hydro");
  override_book b;
  b.set_limit(job, uid, "hydro", limit(5000, {true, 100.5}));
  b.pause(job, uid, "hydro", {false, 0});
  CHECK(b.expire({100, 7}).empty());
  auto const copy = read(b.to_text(this_boot));
  REQUIRE(copy.find(job) != nullptr);
  REQUIRE(copy.find(job)->limit_of("metadata@scratch") != nullptr);
  CHECK(copy.find(job)->limit_of("metadata@scratch")->value == 5000);
  CHECK(copy.find(job)->limit_of("metadata@scratch")->by_owner);
  CHECK(copy.find(job)->limit_of("data@scratch") == nullptr);
  CHECK_FALSE(copy.find(job)->pause->by_owner);
  CHECK(copy.to_text(this_boot) == b.to_text(this_boot));
  CHECK_THROWS_AS(b.pause(job, uid, "hydro", {true, 0}), error);
  CHECK_THROWS_AS(b.resume(job, true), error);
  CHECK(b.resume(job, false));
  CHECK_FALSE(b.resume(job, false));
  CHECK(b.expire({100.5, 7}).size() == 1);
  CHECK(b.find(job) == nullptr);
}

TEST_CASE("a job whose old key was that of another has a page of its own", "[verbs]") {
  char const* const met = "aodmPSQrqiUW1S_ITgCAeUEjb";
  core::job_id const hers = wire::job_key(64001, "hydro"), his = wire::job_key(64002, met);
  override_book b;
  b.pause(hers, 64001, "hydro", {false, 0});
  b.pause(his, 64002, met, {true, 0});
  CHECK(b.resume(his, true));
  b.set_limit(his, 64002, met, limit(1, {true, 0}));
  b = read(b.to_text(this_boot));
  REQUIRE(b.find(hers) != nullptr);
  CHECK(b.find(hers)->pause);
  CHECK(b.find(hers)->limits.empty());
  CHECK(b.find(hers)->uid == 64001);
}

TEST_CASE("an owner does not change what an operator set", "[verbs]") {
  override_book b;
  b.set_limit(1, uid, "hydro", limit(3000, {false, 0}));
  CHECK_THROWS_AS(b.set_limit(1, uid, "hydro", limit(2000, {true, 0})), error);
  CHECK(b.find(1)->limits.front().value == 3000);
  b.set_limit(1, uid, "hydro", limit(4000, {false, 0}));
  CHECK(b.find(1)->limits.size() == 1);
}

TEST_CASE("a book that is none of ours is refused, not taken for an empty one", "[verbs]") {
  CHECK_THROWS_AS(read("[1,"), error);
  CHECK_THROWS_AS(read("{}"), error);
  CHECK_THROWS_AS(read(R"({"format": 2})"), error);
  CHECK_THROWS_AS(read(R"({"format": 2, "overrides": [{"uid": "x"}]})"), error);
  CHECK(read(R"({"format": 2, "overrides": []})").is_empty());
}

TEST_CASE("what was set by hand can be withdrawn, by whom may change it", "[verbs]") {
  override_book b;
  b.set_limit(1, uid, "hydro", limit(3000, {false, 0}));
  b.set_class(1, uid, "hydro", {{}, "bronze"});
  CHECK_THROWS_AS(b.withdraw_limit(1, "metadata@scratch", true), error);
  CHECK_FALSE(b.withdraw_limit(1, "data@scratch", false));
  CHECK(b.withdraw_limit(1, "metadata@scratch", false));
  CHECK_FALSE(b.withdraw_limit(1, "metadata@scratch", false));
  REQUIRE(b.find(1) != nullptr);
  CHECK(b.withdraw_class(1));
  CHECK_FALSE(b.withdraw_class(1));
  CHECK(b.is_empty());
}

TEST_CASE("setting the clock makes what was set for a time neither longer nor shorter", "[verbs]") {
  double const step = GENERATE(-900.0, 0.0, 86400.0);
  override_book b = paused_for_a_minute();
  CHECK(b.expire({1059 + step, 109}).empty());
  CHECK(b.expire({1060 + step, 110}).size() == 1);
}

TEST_CASE("what is told of an end follows the clock", "[verbs]") {
  override_book b = paused_for_a_minute();
  CHECK_FALSE(b.follow_clock({1010.1, 60}));
  CHECK(shown_end(b) == 1060);
  CHECK(b.follow_clock({400, 70}));
  CHECK(shown_end(b) == 440);
  CHECK_FALSE(b.follow_clock({401, 71}));
  b.resume(1, false);
  b.pause(1, uid, "hydro", {});
  CHECK_FALSE(b.follow_clock({9000, 80}));
  CHECK(shown_end(b) == 0);
}

TEST_CASE("the end of an override outlives the daemon, and a restart of the machine", "[verbs]") {
  core::job_id const job = wire::job_key(uid, "hydro");
  std::string const text = paused_for_a_minute().to_text(this_boot);
  override_book same = read(text);
  CHECK(same.expire({5000, 109}).empty());
  CHECK(same.expire({5, 110}).size() == 1);
  override_book restarted = read(text, "2");
  CHECK_FALSE(restarted.follow_clock({1001, 3}));
  CHECK(shown_end(restarted, job) == 1060);
  CHECK(restarted.expire({1059, 500}).empty());
  override_book later = read(restarted.to_text("2"), "2");  // there the daemon was restarted
  CHECK(later.expire({1060, 4}).size() == 1);
}

TEST_CASE("a time counts by the time of day where the kernel has no number for a boot", "[verbs]") {
  override_book b = read(paused_for_a_minute().to_text(""), "");
  CHECK(b.expire({1059, 500}).empty());
  CHECK(b.expire({1060, 51}).size() == 1);
}
