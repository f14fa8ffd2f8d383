// SPDX-License-Identifier: Apache-2.0
#include "base/process_mark.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <thread>

namespace {

/// Waits for as long as it takes: the test as a whole has a limit.
template <class Is>
void await(Is const& is) {
  while (!is()) usleep(1000);
}

/// Of which the first thread has ended, and another one has not.
pid_t fork_headless() {
  pid_t const child = fork();
  if (child != 0) return child;
  std::thread([] {
    for (;;) pause();
  }).detach();
  syscall(SYS_exit, 0);
  _exit(1);
}

bool is_headless(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  return line.find(") Z ") != std::string::npos;
}

}  // namespace

/// The start is the process's in both files.
TEST_CASE("of a process no file is read whose cost grows with its threads", "[base]") {
  auto const self = static_cast<std::uint32_t>(getpid());
  std::string const pid = std::to_string(self);
  CHECK(sluice::stat_path(self) == "/proc/" + pid + "/task/" + pid + "/stat");
  std::ifstream whole("/proc/" + pid + "/stat");
  std::string line;
  REQUIRE(std::getline(whole, line));
  CHECK_THAT(line, Catch::Contains(" " + std::to_string(sluice::start_ticks(self)) + " "));
  CHECK(sluice::parent_of(self) == static_cast<std::uint32_t>(getppid()));
}

TEST_CASE("a process has ended when its last thread has", "[base]") {
  pid_t const child = fork_headless();
  auto const pid = static_cast<std::uint32_t>(child);
  await([&] { return is_headless(child); });
  CHECK_FALSE(sluice::has_process_ended(pid));
  sluice::process_mark const mark = sluice::mark_of(pid);
  CHECK(sluice::is_alive(mark));
  kill(child, SIGKILL);
  siginfo_t ended = {};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(sluice::has_process_ended(pid));
  CHECK_FALSE(sluice::is_alive(mark));
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(sluice::has_process_ended(pid));
  CHECK(sluice::has_process_ended(0));
  CHECK(sluice::has_process_ended(~0u));
}
