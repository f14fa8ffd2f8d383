// SPDX-License-Identifier: Apache-2.0
// What another program prints: all of it, with its status; a program that never ends or prints
// without end is ended.
#include "base/command_output.h"

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>

using sluice::output_of;

TEST_CASE("command: its output and its status", "[policy]") {
  auto const both = output_of({"sh", "-c", "echo a; echo b >&2; exit 3"}, {1000, 0, true});
  CHECK(both.text == "a\nb\n");
  CHECK(both.is_whole);
  CHECK(WEXITSTATUS(both.status) == 3);
  CHECK(output_of({"cat"}, {1000, 0}).text.empty());  // no input
  auto const none = output_of({"/nonexistent/program"}, {1000, 0});
  CHECK(none.start_error == ENOENT);
}

TEST_CASE("command: what does not end is ended", "[policy]") {
  auto const endless = output_of({"sh", "-c", "exec sleep 1000"}, {1000, 50'000'000});
  CHECK_FALSE(endless.is_whole);
  CHECK(WTERMSIG(endless.status) == SIGKILL);
  auto const flood = output_of({"yes"}, {1000, 0});
  CHECK_FALSE(flood.is_whole);
  CHECK(flood.text.size() >= 1000);
}

TEST_CASE("command: signals that we hold back reach it", "[policy]") {
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, SIGTERM);
  sigprocmask(SIG_BLOCK, &one, &before);
  auto const out = output_of({"sh", "-c", "kill -TERM $$; echo alive"}, {1000, 0});
  sigprocmask(SIG_SETMASK, &before, nullptr);
  CHECK(out.text.empty());
  CHECK(WTERMSIG(out.status) == SIGTERM);
}
