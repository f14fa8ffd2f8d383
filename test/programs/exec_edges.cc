// SPDX-License-Identifier: Apache-2.0
// exec_edges: execl with many arguments, and a function that this libc may not have.
#include "check.h"

#include <dlfcn.h>
#include <sys/wait.h>

#define TEN "a", "a", "a", "a", "a", "a", "a", "a", "a", "a"
#define HUNDRED TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN
#define THOUSAND \
  HUNDRED, HUNDRED, HUNDRED, HUNDRED, HUNDRED, HUNDRED, HUNDRED, HUNDRED, HUNDRED, HUNDRED

int main(int argc, char** argv) {
  if (argc > 2) return argc == 5003 && strcmp(argv[argc - 1], "last") == 0 ? 0 : 1;
  // Without a stage, and with a newer libc, nothing is missing or all is there.
  using spawn = int(int*, char const*, void const*, void const*, char* const*, char* const*);
  auto* const start = reinterpret_cast<spawn*>(dlsym(RTLD_DEFAULT, "pidfd_spawn"));
  char name[] = "/none";
  char* const none[] = {name, nullptr};
  int fd = -1;
  int const error = start == nullptr ? ENOSYS : start(&fd, name, nullptr, nullptr, none, none + 1);
  CHECK(error == ENOSYS || error == ENOENT);
  pid_t const child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    execl("/proc/self/exe", "self", "many", THOUSAND, THOUSAND, THOUSAND, THOUSAND, THOUSAND,
          "last", static_cast<char*>(nullptr));
    _exit(1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
