// SPDX-License-Identifier: Apache-2.0
#include "epochs/sync_processes.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace sluice;
using epochs::sync_processes;

namespace {

uid_t tens(uid_t uid) { return uid / 10; }

/// Of nobody: larger than any that the kernel gives.
pid_t nobody() {
  static pid_t last = 1 << 23;
  return ++last;
}

void fill(sync_processes& p, uid_t uid) {
  while (p.has_place(uid)) p.add(nobody(), uid);
}

pid_t child() {
  pid_t const pid = fork();
  if (pid == 0)
    for (;;) pause();
  REQUIRE(pid > 0);
  return pid;
}

}  // namespace

TEST_CASE("sync processes: the uids of one person have few places together", "[epochs]") {
  sync_processes p(tens);
  for (unsigned i = 0; i < sync_processes::most_of_an_owner; ++i) {
    REQUIRE(p.has_place(10 + i));
    p.add(nobody(), 10 + i);
  }
  for (uid_t uid = 10; uid < 20; ++uid) CHECK_FALSE(p.has_place(uid));
  CHECK(p.has_place(20));
}

TEST_CASE("sync processes: the last places are for owners who have none", "[epochs]") {
  sync_processes p({});
  uid_t const few =
      (sync_processes::most - sync_processes::kept_places) / sync_processes::most_of_an_owner;
  for (uid_t uid = 1; uid <= few; ++uid) fill(p, uid);
  for (uid_t uid = few + 1; uid <= few + sync_processes::kept_places; ++uid) {
    REQUIRE(p.has_place(uid));
    p.add(nobody(), uid);
    CHECK_FALSE(p.has_place(uid));
  }
  CHECK_FALSE(p.has_place(1000));
}

TEST_CASE("sync processes: one that was told to end counts until it has", "[epochs]") {
  sync_processes p({});
  pid_t const one = child();
  p.add(one, 1);
  fill(p, 1);
  CHECK_FALSE(p.has_ended(one));
  CHECK_FALSE(p.is_stuck(1));
  p.end(one);
  CHECK_FALSE(p.has_place(1));
  while (!p.has_place(1)) p.reap();
  CHECK(kill(one, 0) != 0);
}

TEST_CASE("sync processes: one that ended by itself counts no more", "[epochs]") {
  sync_processes p({});
  pid_t const one = child();
  p.add(one, 1);
  fill(p, 1);
  REQUIRE(kill(one, SIGKILL) == 0);
  while (!p.has_ended(one)) usleep(1000);
  CHECK(p.has_place(1));
}

TEST_CASE("sync processes: a user is stuck when all that keeps him out is late", "[epochs]") {
  sync_processes p({});
  CHECK_FALSE(p.is_stuck(1));
  pid_t late[sync_processes::most_of_an_owner];
  for (pid_t& pid : late) p.add(pid = child(), 1);
  pid_t const other = child();
  p.add(other, 2);
  for (pid_t const pid : late) {
    CHECK_FALSE(p.is_stuck(1));
    p.end(pid);
  }
  CHECK(p.is_stuck(1));  // nobody has reaped them
  CHECK_FALSE(p.is_stuck(2));
  CHECK_FALSE(p.is_stuck(3));
  p.end(other);
  while (!p.has_place(1)) p.reap();
  CHECK_FALSE(p.is_stuck(1));
}
