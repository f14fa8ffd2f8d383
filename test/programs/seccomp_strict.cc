// SPDX-License-Identifier: Apache-2.0
// After prctl(PR_SET_SECCOMP, STRICT) any system call but read, write, _exit and sigreturn is
// death. The program goes on reading a file, so the stage may make no other call for it.
#include "check.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

int main(int argc, char** argv) {
  int const fd = make_file(folder(argc, argv) + "/seccomp", 1 << 16);
  char byte;
  for (int i = 0; i < 5; ++i) CHECK(pread(fd, &byte, 1, 0) == 1);
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  pid_t const child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    bool good = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0;
    for (int i = 0; i < 200; ++i) good &= read(fd, &byte, 1) == 1;
    good &= write(fd, "y", 1) == 1;
    syscall(SYS_exit, good ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  return 0;
}
