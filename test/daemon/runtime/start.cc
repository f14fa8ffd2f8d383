// SPDX-License-Identifier: Apache-2.0
// What must hold before a role runs, and what the service manager is told.
#include "runtime/start.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "lib/scratch.h"
#include "runtime/notify.h"

using namespace sluice;
using test::scratch;

namespace {

std::uint64_t incarnation(std::string const& dir, std::uint64_t now) {
  std::string trouble;
  auto const n = runtime::next_incarnation(dir, now, trouble);
  CHECK(trouble.empty());
  return n;
}

std::string received(int fd) {
  char text[512];
  ssize_t const n = recv(fd, text, sizeof text, MSG_DONTWAIT);
  return n < 0 ? "" : std::string(text, static_cast<std::size_t>(n));
}

}  // namespace

TEST_CASE("control start: an incarnation is larger than every one before") {
  scratch const own;
  CHECK(incarnation(own.dir, 1000) == 1000);
  CHECK(incarnation(own.dir, 1000) == 1001);
  CHECK(incarnation(own.dir, 500) == 1002);  // the clock was set back
  CHECK(incarnation(own.dir, 5000) == 5000);
  std::ofstream(own.dir + "/incarnation") << "rubbish";
  CHECK(incarnation(own.dir, 6000) == 6000);
}

TEST_CASE("control start: without a place to store, the clock must do") {
  std::string trouble;
  CHECK(runtime::next_incarnation("/proc/no-such-dir", 77, trouble) == 77);
  CHECK(!trouble.empty());
}

TEST_CASE("control start: one daemon per run directory") {
  scratch const own;
  int const lock = runtime::lock_run_dir(own.dir);
  CHECK_THROWS_WITH(runtime::lock_run_dir(own.dir),
                    Catch::Contains("(pid " + std::to_string(getpid()) + ") serves " + own.dir));
  close(lock);
  int const again = runtime::lock_run_dir(own.dir);
  CHECK(again >= 0);
  close(again);
}

TEST_CASE("control start: one daemon per state directory, which may be the run directory") {
  scratch const own;
  std::string trouble;
  int const run = runtime::lock_run_dir(own.dir);
  int const lock = runtime::lock_state_dir(own.dir, trouble);
  CHECK_THROWS_WITH(
      runtime::lock_state_dir(own.dir, trouble),
      Catch::Contains("(pid " + std::to_string(getpid()) + ") keeps its state in " + own.dir));
  close(lock);
  int const again = runtime::lock_state_dir(own.dir, trouble);
  CHECK(again >= 0);
  CHECK(trouble.empty());
  close(again);
  close(run);
  CHECK(runtime::lock_state_dir("/proc/no-such-dir", trouble) == -1);
  CHECK_THAT(trouble, Catch::StartsWith("/proc/no-such-dir/state.lock: "));
}

TEST_CASE("control start: directories") {
  scratch const own;
  runtime::make_dir(own.dir + "/a/b", 0700, "");
  struct stat st = {};
  REQUIRE(stat((own.dir + "/a/b").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0700);
  CHECK_NOTHROW(runtime::make_dir(own.dir + "/a/b", 0711, ""));
  CHECK_THROWS_AS(runtime::make_dir("/proc/x", 0700, ""), error);
}

TEST_CASE("control start: too few descriptors are said in words") {
  runtime::config c;
  c.role = runtime::role_kind::cluster;
  CHECK(runtime::check_machine(c, {1, 0}).empty());
  auto const said = runtime::check_machine(c, {100'000'000, 0});
  REQUIRE(!said.empty());
  CHECK_THAT(said[0], Catch::Contains("100000000 children need 400000256: raise RLIMIT_NOFILE"));
  c.role = runtime::role_kind::node;
  auto const of_node = runtime::check_machine(c, {0, 100'000'000});
  REQUIRE(!of_node.empty());
  CHECK_THAT(of_node[0], Catch::Contains("100000000 jobs need 600000260: raise RLIMIT_NOFILE"));
}

TEST_CASE("control notify: what the service manager hears") {
  scratch const own;
  std::string const path = own.dir + "/notify";
  int const fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  std::strcpy(at.sun_path, path.c_str());
  REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  setenv("WATCHDOG_USEC", "3000000", 1);
  runtime::notifier n;
  CHECK(getenv("NOTIFY_SOCKET") == nullptr);
  n.ready();
  CHECK(received(fd) == "READY=1\n");
  n.status("3 jobs\nREADY=0");
  CHECK(received(fd) == "STATUS=3 jobs READY=0\n");
  n.status("3 jobs\nREADY=0");
  CHECK(received(fd).empty());
  n.reloading(5'000'000);
  CHECK(received(fd) == "RELOADING=1\nMONOTONIC_USEC=5000\n");
  n.alive(10'000'000'000);
  CHECK(received(fd) == "WATCHDOG=1\n");
  n.alive(10'500'000'000);
  CHECK(received(fd).empty());
  n.alive(11'000'000'000);
  CHECK(received(fd) == "WATCHDOG=1\n");
  n.stopping();
  CHECK(received(fd) == "STOPPING=1\n");
  close(fd);
}

TEST_CASE("control notify: nobody asked") {
  unsetenv("NOTIFY_SOCKET");
  runtime::notifier n;
  n.ready();
  n.alive(1);
}
