// SPDX-License-Identifier: Apache-2.0
// A process that is there for its owner and name alone. Needs root.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "base/descriptor.h"

namespace sluice::test {

class named_process {
 public:
  named_process(uid_t owner, std::string const& name) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    descriptor const hears(ends[0]);
    descriptor says(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
      bool const is_it = setresuid(owner, owner, owner) == 0 &&
                         prctl(PR_SET_NAME, name.c_str()) == 0 &&
                         prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::write(says.get(), "n", 1) == 1;
      for (; is_it;) pause();
      _exit(1);
    }
    says = descriptor();
    char byte = 0;
    REQUIRE(::read(hears.get(), &byte, 1) == 1);
  }
  ~named_process() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  named_process(named_process const&) = delete;
  named_process& operator=(named_process const&) = delete;

 private:
  pid_t pid_;
};

}  // namespace sluice::test
