// SPDX-License-Identifier: Apache-2.0
// The directories that the keeper makes for the journals of users.
#include "node/user_places.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "lib/scratch.h"

using namespace sluice;

namespace {

mode_t mode_of(std::string const& path) {
  struct stat st = {};
  REQUIRE(stat(path.c_str(), &st) == 0);
  return st.st_mode & 07777;
}

uid_t owner_of(std::string const& path) {
  struct stat st = {};
  REQUIRE(stat(path.c_str(), &st) == 0);
  return st.st_uid;
}

}  // namespace

TEST_CASE("user places: what a keeper leaves when it is killed is set right by the next") {
  if (geteuid() != 0) return;  // nobody else makes places for others
  sluice::test::scratch const at;
  uid_t const user = 64001;
  node::user_places places(at.dir);
  std::string const slot = at.dir + "/64001", own = slot + "/own";
  CHECK(places.place_of(user) == own);
  REQUIRE(places.make(user) == 0);
  CHECK(mode_of(slot) == 0711);
  CHECK(owner_of(slot) == 0);
  CHECK(mode_of(own) == 0700);
  CHECK(owner_of(own) == user);

  SECTION("before the slot had its mode") { REQUIRE(chmod(slot.c_str(), 0700) == 0); }
  SECTION("between the two removals") { REQUIRE(rmdir(own.c_str()) == 0); }
  SECTION("before the new slot had its name") {
    REQUIRE(places.remove(user) == 0);
    REQUIRE(mkdir((at.dir + "/.new-64001").c_str(), 0700) == 0);
    REQUIRE(mkdir((at.dir + "/.new-64001/own").c_str(), 0700) == 0);
  }
  // Where processors are short, a child takes longer than a keeper waits. Who asks again before it
  // has ended is not made to wait.
  auto const patiently = [](auto const& act) {
    int status = act();
    for (int i = 0; status == EBUSY && i < 600; ++i) {
      usleep(50'000);
      status = act();
    }
    return status;
  };
  REQUIRE(patiently([&] { return places.make(user); }) == 0);
  CHECK(mode_of(slot) == 0711);
  CHECK(mode_of(own) == 0700);
  CHECK(owner_of(own) == user);
  REQUIRE(patiently([&] { return places.remove(user); }) == 0);
  CHECK(access(slot.c_str(), F_OK) != 0);
}
