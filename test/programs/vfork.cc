// SPDX-License-Identifier: Apache-2.0
// vfork returns twice on one stack. The child closes and duplicates descriptors (its own table, not
// the parent's) and executes; the parent then finds its descriptors, locals and results unchanged.
#include "check.h"

#include <sys/wait.h>

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  int const fd = make_file(dir + "/vfork");
  int pipes[2];
  CHECK(pipe(pipes) == 0);
  for (int i = 0; i < 20; ++i) {
    int volatile marker = 1000 + i;
    pid_t const parent = getpid();
    pid_t const child = vfork();
    CHECK(child >= 0);
    if (child == 0) {
      close(fd);
      dup2(pipes[0], fd);
      if (i % 2) execl("/bin/sh", "sh", "-c", "exit 7", static_cast<char*>(nullptr));
      _exit(7);
    }
    CHECK(getpid() == parent && marker == 1000 + i);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    char byte;
    CHECK(pread(fd, &byte, 1, 0) == 1 && byte == 'x');
  }
  return 0;
}
