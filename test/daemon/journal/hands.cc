// SPDX-License-Identifier: Apache-2.0
// Processes of a recovery that somebody keeps waiting. Needs root, loop devices and userfaultfd.
#include "journal/hands.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <list>
#include <map>
#include <string>

#include "base/descriptor.h"
#include "journal/left_behind.h"
#include "lib/held_lock.h"
#include "lib/in_a_child.h"
#include "lib/named_process.h"
#include "recover_bench.h"

using namespace sluice::journal;
using sluice::descriptor;
using sluice::test::bench;
using sluice::test::held_lock;
using sluice::test::in_a_child;
using sluice::test::named_process;

namespace {

/// Nobody else's at the same time.
uid_t const user = 3'000'000'000u + static_cast<uid_t>(getpid()), another = user + 100'000'000u;

/// Few are left, and each is waited for as long.
lock_patience few() {
  lock_patience p;
  p.first_ns = p.next_ns = p.last_ns = p.least_ns = 3'000'000'000;
  p.most_shared = 1;
  p.most_private = 2;
  return p;
}

unsigned no_others(pid_t /*but*/) { return 0; }

}  // namespace

TEST_CASE("what recoveries of a user left behind is known by owner and name", "[order]") {
  if (geteuid() != 0) return;
  CHECK(hands_left(user) == 0);
  named_process const his(user, hands_name), hers(another, hands_name), other(user, "sluice-hand");
  CHECK(hands_left(user) == 1);
  named_process const opens(0, opener_name(user));
  named_process const forged(another, opener_name(user));
  CHECK(openers_left(user) == 1);
  CHECK(openers_left(another) == 0);
}

TEST_CASE("hands: what earlier recoveries left behind counts while it is there", "[order]") {
  bench b;
  if (!b.begin()) return;
  std::map<std::string, unsigned> const modes = {{"open", 0644},     {"open2", 0644},
                                                 {"free", 0644},     {"private", 0600},
                                                 {"private2", 0600}, {"own", 0600}};
  for (auto const& [name, mode] : modes) {
    b.write(name, "home");
    REQUIRE(chmod(b.path(name).c_str(), mode) == 0);
    REQUIRE(chown(b.path(name).c_str(), user, user) == 0);
  }
  REQUIRE(chmod(b.at.dir.c_str(), 0755) == 0);
  REQUIRE(chmod(b.at.holder.dir.c_str(), 0755) == 0);
  std::list<held_lock> locks;
  for (auto const* name : {"open", "open2", "private", "private2"})
    locks.emplace_back(b.path(name));
  if (!locks.front()) return;
  auto const cut = [&](hands& by, std::string const& name) {
    descriptor const file(open(b.path(name).c_str(), O_RDWR | O_CLOEXEC));
    int const error = by.truncate(file.get(), 2);
    return error == held ? "held " : error == unasked ? "unasked " : error == 0 ? "done " : "? ";
  };
  auto const recovery = [&](std::list<std::string> const& names) {
    return in_a_child([&](int to) {
      REQUIRE(setresuid(user, user, user) == 0);
      hands by([](pid_t but) { return hands_left(user, but); }, few());
      for (auto const& name : names) dprintf(to, "%s", cut(by, name));
    });
  };
  CHECK(recovery({"open", "open2", "free", "own"}) == "held unasked unasked done ");
  CHECK(recovery({"free", "own", "private", "own"}) == "unasked done held unasked ");
  CHECK(recovery({"free", "own", "private2"}) == "unasked unasked unasked ");
  locks.clear();
  while (hands_left(user) != 0) usleep(10'000);
  CHECK(recovery({"free", "own", "private"}) == "done done done ");
}

TEST_CASE("hands: who was given up in a write leaves the file as it was", "[order]") {
  bench b;
  if (!b.begin()) return;
  b.write("a", "home");
  struct stat before = {}, after = {};
  REQUIRE(stat(b.path("a").c_str(), &before) == 0);
  usleep(20'000);  // beyond a tick of the inode's clock
  held_lock somebody(b.path("a"));
  if (!somebody) return;
  descriptor const file(open(b.path("a").c_str(), O_RDWR | O_CLOEXEC));
  std::string const text = "LOGS";
  {
    hands by(no_others, few());
    CHECK(by.write(file.get(), 0, std::as_bytes(std::span(text))) == held);
  }
  somebody.end();
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) continue;  // it ends as well
  REQUIRE(stat(b.path("a").c_str(), &after) == 0);
  CHECK((changed_ns(after) == changed_ns(before) && b.read("a") == "home"));
}
