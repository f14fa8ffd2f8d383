// SPDX-License-Identifier: Apache-2.0
// fork_longjmp DIR: a child's first call is left by siglongjmp, in child after child a little
// later. Each child then reads 20 times, which must be counted. Prints how many children there
// were.
#include "stepped.h"

#include <setjmp.h>
#include <sys/wait.h>

namespace {
sigjmp_buf back;
void jump() { siglongjmp(back, 1); }
}  // namespace

int main(int argc, char** argv) {
  std::string const file = folder(argc, argv) + "/fork_longjmp";
  int const fd = make_file(file);
  catch_steps(jump);
  int children = 0;
  for (long at = 1; at < 20'000; at += at < 100 ? 9 : 71) {
    pid_t const child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      bool jumped = true;
      if (sigsetjmp(back, 1) == 0) jumped = interrupted(at, [&] { access(file.c_str(), F_OK); });
      char byte;
      for (int i = 0; i < 20; ++i) CHECK(pread(fd, &byte, 1, 0) == 1);
      _exit(jumped ? 0 : 3);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    ++children;
    if (WEXITSTATUS(status) == 3) break;  // the whole call was passed
    CHECK(WEXITSTATUS(status) == 0);
  }
  printf("%d\n", children);
  return 0;
}
