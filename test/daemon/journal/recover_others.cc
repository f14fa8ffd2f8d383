// SPDX-License-Identifier: Apache-2.0
// What others did between a crash and its recovery, or between two attempts: nothing that was
// acknowledged is lost without a word, and nobody's later bytes are written over. Needs root and
// loop devices.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "lib/silent_fuse.h"
#include "recover_bench.h"

using namespace sluice::journal;
using sluice::test::bench;

namespace {

constexpr uid_t stranger = 64001;

void make_theirs(bench const& b, std::string const& name) {
  b.write(name, "theirs");
  REQUIRE(chown(b.path(name).c_str(), stranger, stranger) == 0);
}

recovered recover_into(std::string const& log, std::string const& into) {
  recover_options o;
  o.log = log;
  o.into = into;
  return recover(o);
}

}  // namespace

TEST_CASE("a name that another user took loses no file, whenever he took it", "[order]") {
  bench b;
  if (!b.begin()) return;  // a minute: all of this may have been before the crash
  bool const is_earlier = GENERATE(true, false);
  if (is_earlier) {
    make_theirs(b, "elsewhere");  // which lost that name, and the disk does not know
    usleep(20'000);
  }
  b.tell_lost("a", "LOGS");
  usleep(20'000);
  if (!is_earlier) make_theirs(b, "a");
  b.crash();
  if (is_earlier) {
    // A link would date it anew, so the name is what is put back.
    b.write("a", "");
    REQUIRE(rename(b.path("a").c_str(), b.path("b").c_str()) == 0);
    REQUIRE(b.at.mount_again("ln elsewhere a"));
  }
  CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("was put there by somebody else"));
  recovered const r = b.recover_it(false, true);
  REQUIRE(r.aside.size() == 1);
  CHECK(b.read("a") == "theirs");
  REQUIRE(unlink(b.path("a").c_str()) == 0);
  b.log = r.aside_log;
  b.recover_it();
  CHECK(b.read("a") == "LOGS");
}

TEST_CASE("the name of a file that was removed is whoever's took it", "[order]") {
  bench b;
  if (!b.begin()) return;
  record r = b.tell_lost("a", "LOGS");
  r.what = kind::unlink;
  b.tell(r);
  make_theirs(b, "a");
  b.crash();
  CHECK(b.recover_it().done.ahead == 1);
  CHECK(b.read("a") == "theirs");
}

TEST_CASE("what another user mounted at a name is not asked", "[order]") {
  bench b;
  if (!b.begin()) return;
  b.tell_lost("a", "LOGS");
  b.crash();
  std::string const at = b.path("a");
  REQUIRE(mkdir(at.c_str(), 0755) == 0);
  recovered done;
  {
    sluice::test::silent_fuse over(at);
    if (!over.is_mounted()) {
      WARN("skip: needs FUSE");
      return;
    }
    CHECK_FALSE(over.is_asked_by([&] { done = b.recover_it(false, true); }));
  }
  CHECK(done.aside.size() == 1);
}

TEST_CASE("what was written between two attempts is not the recovery's", "[order]") {
  bench b;
  if (!b.begin(0)) return;
  for (auto const* name : {"a", "stuck", "c"}) b.write(name, "home");
  b.immutable("stuck", true);
  for (auto const* name : {"a", "stuck", "c"}) b.tell_data(b.id_of(b.path(name)), 0, "LOGS");
  b.crash();
  CHECK_THROWS_AS(b.recover_it(), sluice::error);
  usleep(20'000);
  b.immutable("stuck", false);
  CHECK(b.read("a") == "LOGS");  // by the attempt, so it does not count as somebody's
  usleep(20'000);
  b.write("c", "mine");
  usleep(20'000);
  REQUIRE(chmod(b.path("c").c_str(), 0600) == 0);  // a mount gives both times alike
  recovered const r = b.recover_it(false, true);
  CHECK(b.read("c") == "mine");
  REQUIRE(r.aside.size() == 2);  // and the one whose flags were changed
  CHECK(b.read("a") == "LOGS");
}

TEST_CASE("a file that an attempt made and its user changed is his", "[order]") {
  bench b;
  if (!b.begin(0)) return;
  b.tell_lost("a", "LOGS");
  b.write("stuck", "home");
  b.immutable("stuck", true);
  b.tell_data(b.id_of(b.path("stuck")), 0, "LOGS");
  b.crash();
  CHECK_THROWS_AS(b.recover_it(), sluice::error);
  REQUIRE(b.read("a") == "LOGS");
  usleep(20'000);
  bool const is_changed = GENERATE(true, false);
  if (is_changed) b.write("a", "mine");
  usleep(20'000);
  b.immutable("stuck", false);
  recovered const r = b.recover_it(false, true);
  CHECK(b.read("a") == (is_changed ? "mine" : "LOGS"));
  CHECK(r.aside.size() == (is_changed ? 2 : 1));
}

TEST_CASE("what was removed, and changed after the crash, stays", "[order]") {
  bench b;
  if (!b.begin(0)) return;
  b.write("a", "home");
  b.tell_data(b.id_of(b.path("a")), 0, "LOGS");
  b.tell(b.about(kind::unlink, "a"));
  b.crash();
  usleep(20'000);
  bool const is_changed = GENERATE(true, false);
  if (is_changed) b.write("a", "mine");
  usleep(20'000);
  if (is_changed) REQUIRE(chmod(b.path("a").c_str(), 0600) == 0);
  CHECK(b.recover_it(false, true).done.kept_names.size() == (is_changed ? 1 : 0));
  CHECK(b.read("a") == (is_changed ? "mine" : "no file"));
}

TEST_CASE("a file whose directory is no more is kept, and comes home elsewhere", "[order]") {
  bench b;
  if (!b.begin(0)) return;
  bool const was_removed = GENERATE(false, true);
  std::string const name = GENERATE(as<std::string>(), "same", std::string(255, 's'));
  REQUIRE(mkdir(b.path("d").c_str(), 0755) == 0);
  file_id const directory = b.id_of(b.path("d"));
  for (auto const* text : {"a", "b"}) {
    record gone = b.tell_lost(name, text, &directory);
    gone.what = kind::unlink;
    if (was_removed) b.tell(gone);
  }
  REQUIRE(rmdir(b.path("d").c_str()) == 0);
  b.crash();
  if (!was_removed) {
    CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("--into"));
  }
  recovered const r = b.recover_it(false, true);
  CHECK(r.aside.size() == (was_removed ? 0 : 2));
  if (was_removed) return;
  CHECK(r.aside[0].why.find("directory") != std::string::npos);
  REQUIRE(mkdir(b.path("found").c_str(), 0755) == 0);
  CHECK_THROWS_WITH(recover_into(r.aside_log, "/proc"), Catch::Contains("/proc"));
  REQUIRE(chmod(b.path("found").c_str(), 0777) == 0);
  CHECK_THROWS_WITH(recover_into(r.aside_log, b.path("found")), Catch::Contains("others may"));
  REQUIRE(chmod(b.path("found").c_str(), 0755) == 0);
  CHECK(recover_into(r.aside_log, b.path("found")).done.made == 2);
  std::string const second = name.substr(0, 253) + ".2";
  CHECK((b.read("found/" + name) == "a" && b.read("found/" + second) == "b"));
}

TEST_CASE("an attempt to bring files elsewhere that was cut off leaves no second ones", "[order]") {
  bench b;
  if (!b.begin(0)) return;
  REQUIRE(mkdir(b.path("found").c_str(), 0755) == 0);
  b.write("found/his", "his");
  REQUIRE(mkdir(b.path("d").c_str(), 0755) == 0);
  file_id const directory = b.id_of(b.path("d"));
  b.tell_lost("a", "LOGS", &directory);
  REQUIRE(rmdir(b.path("d").c_str()) == 0);
  b.write("stuck", "home");
  b.immutable("stuck", true);
  b.tell_data(b.id_of(b.path("stuck")), 0, "LOGS");
  b.crash();
  CHECK_THROWS_AS(recover_into(b.log, b.path("found")), sluice::error);
  CHECK(b.read("found/a") == "LOGS");
  CHECK_THROWS_AS(recover_into(b.log, b.path("found")), sluice::error);
  CHECK((b.read("found/a") == "LOGS" && b.read("found/a.2") == "no file"));
  CHECK(b.read("found/his") == "his");
  b.immutable("stuck", false);
}
