// SPDX-License-Identifier: Apache-2.0
// When nobody asks the service holds nothing, and programs have nothing to note.
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "order_served.h"

using sluice::test::guest;
using sluice::test::lacks_root;
using sluice::test::served;
namespace abi = sluice::abi;
namespace journal = sluice::journal;

namespace {

bool comes(std::function<bool()> const& is_so) {
  for (int i = 0; i < 6000; ++i, usleep(10'000))  // a sync of a busy disk takes long
    if (is_so()) return true;
  return false;
}

void rests_after(served& s, std::uint64_t idle_ns) {
  s.ask([=](journal::service& d) { return d.rests_after(idle_ns), 0; });
}

}  // namespace

TEST_CASE("a service that nobody asks holds no file", "[order]") {
  served s;
  if (lacks_root(s)) return;
  auto& unwatched = s.program->area().head.unwatched;
  rests_after(s, 1);
  CHECK(comes([&] { return unwatched == 1; }));
  rests_after(s, 0);
  int const fd = s.make("a");
  REQUIRE(s.program->sync(fd) == 0);
  CHECK(unwatched == 0);
  CHECK((s.program->state(fd) & abi::order_watched) != 0);
  // What was made before anybody noted names is synced at home; what comes after it is logged.
  CHECK(s.counts().logged == 0);
  s.write(fd, 0, "more than nothing");
  REQUIRE(s.program->sync(fd) == 0);
  CHECK(s.counts().logged == 1);
  rests_after(s, 1);
  CHECK(comes([&] { return unwatched == 1; }));
  rests_after(s, 0);
  CHECK((s.program->state(fd) & (abi::order_watched | abi::order_logged)) == 0);
  // Nobody noted this, so it is synced at home, and not taken for what the log had.
  REQUIRE(pwrite(fd, "nobody notes", 12, 0) == 12);
  REQUIRE(s.program->sync(fd) == 0);
  CHECK(s.counts().logged == 1);
  close(fd);
}

TEST_CASE("a service that nobody asks lets file systems be unmounted", "[order]") {
  served s;
  if (lacks_root(s)) return;
  unsigned let_go = 0;
  s.ask([&](journal::service& d) { return d.on_let_go([&] { ++let_go; }), 0; });
  s.know();
  int const fd = s.make("a"), directory = open(s.dir.c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(s.program->sync(fd) == 0);
  CHECK(s.counts().logged == 1);
  int const mapped = s.make("b"), held = s.make("c");
  REQUIRE(s.program->sync(held) == 0);
  for (int const one : {mapped, held}) {
    s.program->raise(one, abi::order_bypass);
    CHECK(s.program->ask(one, abi::order_request::drain) == 0);
    close(one);
  }
  rests_after(s, 1);
  CHECK(comes([&] { return s.ask([&](auto&) { return let_go; }) == 1; }));
  // While it rests as well.
  REQUIRE(s.program->sync(directory, abi::order_request::directory) == 0);
  close(fd);
  close(directory);
  CHECK(comes([&] { return umount(s.dir.c_str()) == 0; }));
  s.is_mounted = false;
}

TEST_CASE("syncs of directories one after the other leave time to tidy up", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  constexpr int many = 20;
  int fds[many];
  for (int i = 0; i < many; ++i) {
    fds[i] = s.make("file" + std::to_string(i));
    REQUIRE(s.program->sync(fds[i]) == 0);
  }
  auto& lone = s.program->area().head.lone;
  int const dir = open(s.dir.c_str(), O_RDONLY | O_DIRECTORY);
  lone = 5;  // of programs that were killed
  for (int i = 0; i < 6000 && lone != 0; ++i, usleep(5000)) {
    REQUIRE(s.program->sync(dir, abi::order_request::directory) == 0);
  }
  CHECK(lone == 0);
  for (int const fd : fds) close(fd);
  close(dir);
}

TEST_CASE("what a program wrote before its area was served counts as written", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const fd = s.make("a");
  s.write(fd, 0, std::string(8192, 'a'));
  REQUIRE(s.program->sync(fd) == 0);
  std::uint64_t const logged = s.counts().logged;
  guest other(s.holder.dir + "/order2", true);
  REQUIRE(pwrite(fd, "b", 1, 0) == 1);
  s.ask([&](journal::service& d) {
    d.add(std::make_unique<journal::area>(s.holder.dir + "/order2"));
    return 0;
  });
  auto const wanted = abi::order_watched | abi::order_whole;
  CHECK((other.state(fd) & wanted) == wanted);
  CHECK(other.area().head.unwatched == 0);
  // All of it, in case it was that program's.
  REQUIRE(s.program->sync(fd) == 0);
  CHECK(s.counts().logged == logged + 1);
  s.kill();
  std::ofstream(s.path("a")) << "home lost it";
  s.recover_it();
  CHECK(s.read("a") == "b" + std::string(8191, 'a'));
  close(fd);
}
