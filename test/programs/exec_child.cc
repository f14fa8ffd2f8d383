// SPDX-License-Identifier: Apache-2.0
// exec_child MODE PROG ARGS…: starts PROG with an environment that lacks everything, in each of
// the ways there are, and gives its status.
#include "check.h"

#include <spawn.h>
#include <sys/wait.h>

#include <vector>

namespace {
char* empty[] = {nullptr};
char plain[] = "ONLY=this";
char* one[] = {plain, nullptr};

void become(std::string const& mode, char** args) {
  if (mode == "execve" || mode == "vfork") execve(args[0], args, empty);
  if (mode == "execve_one") execve(args[0], args, one);
  if (mode == "execve_null") execve(args[0], args, nullptr);
  if (mode == "execvpe") execvpe(args[0], args, one);
  if (mode == "execle")
    execle(args[0], args[0], args[1], args[2], args[3], static_cast<char*>(nullptr), empty);
  if (mode == "fexecve") fexecve(open(args[0], O_RDONLY | O_CLOEXEC), args, empty);
  if (mode == "execveat") execveat(AT_FDCWD, args[0], args, empty, 0);
  if (mode == "clearenv") {
    clearenv();
    execv(args[0], args);
  }
  if (mode == "unsetenv") {
    unsetenv("LD_PRELOAD");
    execvp(args[0], args);
  }
  _exit(126);
}
}  // namespace

int main(int argc, char** argv) {
  CHECK(argc >= 3);
  std::string const mode = argv[1];
  char** args = argv + 2;
  pid_t child = -1;
  if (mode == "spawn") {
    CHECK(posix_spawn(&child, args[0], nullptr, nullptr, args, empty) == 0);
  } else if (mode == "spawnp") {
    CHECK(posix_spawnp(&child, args[0], nullptr, nullptr, args, one) == 0);
  } else if (mode == "vfork") {
    child = vfork();
    if (child == 0) become(mode, args);
  } else {
    child = fork();
    if (child == 0) become(mode, args);
  }
  CHECK(child > 0);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
