// SPDX-License-Identifier: Apache-2.0
// A part of a test in a process of its own, which may give up its rights.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <exception>
#include <string>

namespace sluice::test {

/// What it wrote to the descriptor that it is given, or what it threw; empty: it ended well.
template <class Act>
std::string in_a_child(Act const& act) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t const pid = fork();
  if (pid == 0) {
    close(ends[0]);
    try {
      act(ends[1]);
    } catch (std::exception const& e) {
      dprintf(ends[1], "%s", e.what());
    } catch (...) {
      dprintf(ends[1], "a check failed");
    }
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char some[512];
  for (ssize_t n = 0; (n = ::read(ends[0], some, sizeof some)) > 0;)
    said.append(some, static_cast<std::size_t>(n));
  close(ends[0]);
  waitpid(pid, nullptr, 0);
  return said;
}

}  // namespace sluice::test
