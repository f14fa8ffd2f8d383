// SPDX-License-Identifier: Apache-2.0
// seccomp_exec MODE PROG ARGS…: enters a sandbox that kills for the calls a stage begins with, and
// starts PROG in it in one of the ways there are. Gives its status. `syscall` enters by syscall(2)
// alone and starts nothing.
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define KILLED(number)                                 \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

namespace {

void enter(bool by_number) {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         KILLED(SYS_madvise),
                         KILLED(SYS_statx),
                         KILLED(SYS_gettid),
                         KILLED(SYS_faccessat2),
                         KILLED(SYS_readlink),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog const filter = {sizeof rules / sizeof *rules, rules};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  if (by_number)
    CHECK(syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0);
  else
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0);
}

void become(std::string const& mode, char** args) {
  enter(false);
  if (mode == "execv") execv(args[0], args);
  if (mode == "execve") execve(args[0], args, environ);
  if (mode == "execl") execl(args[0], args[0], static_cast<char*>(nullptr));
  if (mode == "execvp") execvp(args[0], args);
  _exit(126);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc >= 3);
  std::string const mode = argv[1];
  char** args = argv + 2;
  pid_t child = -1;
  if (mode == "syscall") {
    CHECK(syscall(SYS_prctl, PR_SET_NAME, "named", 0, 0, 0) == 0);
    enter(true);
    for (int i = 0; i < 200; ++i) {
      int const fd = open(args[0], O_RDONLY);
      CHECK(fd >= 0 && close(fd) == 0);
    }
    return 0;
  }
  if (mode == "spawn") {
    enter(false);
    CHECK(posix_spawn(&child, args[0], nullptr, nullptr, args, environ) == 0);
  } else if (mode == "vfork") {
    child = vfork();
    if (child == 0) become("execve", args);
  } else {
    become(mode, args);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
