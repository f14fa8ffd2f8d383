// SPDX-License-Identifier: Apache-2.0
// A program that has entered a sandbox of its own making, in which calls that it does not make
// itself are death. It goes on naming files, at addresses of any kind.
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define KILLED(number)                                 \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

namespace {

void enter() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         KILLED(SYS_rt_sigprocmask),
                         KILLED(SYS_statx),
                         KILLED(SYS_readlink),
                         KILLED(SYS_gettid),
                         KILLED(SYS_futex),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog const filter = {sizeof rules / sizeof *rules, rules};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0);
}

void work(char const* mapped) {
  for (int i = 0; i < 20; ++i) {
    int const fd = open(mapped, O_RDONLY);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK(access("/none/x", R_OK) == -1 && errno == ENOENT);
    CHECK(open(mapped + 4096, O_RDONLY) == -1 && errno == EFAULT);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string const file = folder(argc, argv) + "/sandboxed";
  close(make_file(file));
  auto* const page = static_cast<char*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
  strcpy(page, file.c_str());
  work(page);
  pid_t const child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    enter();
    work(page);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  return 0;
}
