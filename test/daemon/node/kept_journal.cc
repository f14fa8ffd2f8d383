// SPDX-License-Identifier: Apache-2.0
#include "node/kept_journal.h"

#include <poll.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/process_mark.h"
#include "lib/scratch.h"
#include "node/journal_places.h"
#include "node/pace.h"

using namespace sluice;
using namespace sluice::node;

namespace {

struct kept {
  test::scratch at;
  journal_settings settings;
  user_places places;
  kept_journal one;

  explicit kept(bool is_left)
      : settings{"/bin/false", "", at.dir, 4, 8, 0, at.dir + "/run"},
        places(at.dir),
        one(settings, places, geteuid(), is_left) {}

  /// Its process ends with an error.
  void fail() {
    one.start();
    await_end();
    REQUIRE(one.report().phase == journal_phase::pausing);
  }
  void await_end() {
    while (one.has_process()) {
      std::vector<pollfd> each;
      one.add_to(each);
      poll(each.data(), each.size(), 10);
      one.look();
    }
  }
};

uid_t tens(uid_t uid) { return uid / 10; }

}  // namespace

TEST_CASE("a journal that waits for its next start says when, unless it ends", "[node]") {
  kept k(true);
  k.fail();
  std::int64_t const due_ns = k.one.report().due_ns;
  CHECK(k.one.due_ns() == due_ns);
  CHECK_FALSE(k.one.waits_for_turn(due_ns - 1));
  CHECK(k.one.waits_for_turn(due_ns));
  k.one.again();
  CHECK(k.one.waits_for_turn(k.one.report().due_ns));
  CHECK(k.one.due_ns() == never_ns);  // until it has its turn
  k.one.stop();
  CHECK_FALSE(k.one.waits_for_turn(never_ns));
  CHECK(k.one.due_ns() == never_ns);
}

TEST_CASE("of a journal that ends with an error it is said whether it is there", "[node]") {
  kept k(true);
  bool const is_there = GENERATE(true, false);
  std::string const place = k.places.place_of(geteuid());
  std::filesystem::create_directories(place);
  if (is_there) std::ofstream(place + "/journal") << "1";
  k.one.start();
  // A signal would find our own handler in a child that is no other program yet.
  while (!has_process_ended(k.one.report().pid)) usleep(1'000);
  k.one.stop();
  k.await_end();
  REQUIRE(k.one.report().phase == journal_phase::over);
  CHECK(k.one.report().is_gone == (is_there ? 0 : 1));
}

TEST_CASE("a journal that cannot be recovered takes no room of others", "[node]") {
  kept k(true);
  CHECK(k.one.takes_room());
  k.fail();
  CHECK_FALSE(k.one.takes_room());
}

TEST_CASE("journals of one owner take as many places as he may have", "[node]") {
  journal_places places(tens);
  for (uid_t uid = 10; uid < 18; ++uid) places.take(uid);
  CHECK(places.taken() == most_journals_of_an_owner);
  CHECK(places.of_owner(19) == 8);
  CHECK(places.has_all(19));
  CHECK_FALSE(places.has_all(20));
  places.take(20);
  CHECK(places.taken() == most_journals_of_an_owner + 1);
  CHECK_FALSE(places.has_all(21));
}
