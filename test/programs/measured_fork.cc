// SPDX-License-Identifier: Apache-2.0
// measured_fork DIR: a signal handler forks somewhere in a read, in read after read a little later.
// The child ends the read, too, and its kernel has counted nothing for it before. Prints how many
// children there were. DIR lies on a disk, so that something was counted for the parent.
#include "stepped.h"

#include <fcntl.h>
#include <sys/wait.h>

namespace {
pid_t child = -1;
void split() { child = fork(); }
}  // namespace

int main(int argc, char** argv) {
  std::string const file = folder(argc, argv) + "/measured_fork";
  int const fd = make_file(file);
  CHECK(fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
  char byte;
  CHECK(pread(fd, &byte, 1, 0) == 1);
  catch_steps(split);
  int children = 0;
  for (long at = 1; at < 20'000; at += 83) {
    bool const is_inside = interrupted(at, [&] { CHECK(pread(fd, &byte, 1, 0) == 1); });
    if (!is_inside) break;
    if (child == 0) _exit(0);
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    ++children;
  }
  printf("%d\n", children);
  return children > 3 ? 0 : 1;
}
