// SPDX-License-Identifier: Apache-2.0
// seccomp_exec [twice | by-number] MODE PROG ARGS…: enters a sandbox that kills for the calls a
// stage begins with, and starts PROG in it in one of the ways there are. Gives its status.
// `syscall` enters by syscall(2) alone and starts nothing. `twice`: after a sandbox that ends
// nobody; `by-number`: that, and the second one by syscall(2).
#include "check.h"

#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#define KILLED(number)                                 \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

namespace {

bool is_second = false, is_by_number = false;

void enter_harmless() {
  sock_filter rules[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog const filter = {1, rules};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0);
  // A program that asks whether there are sandboxes is in no other one.
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr, 0, 0) == -1 && errno == EFAULT);
}

void enter(bool by_number) {
  if (is_second) enter_harmless();
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
  enter(is_by_number);
  if (mode == "execv") execv(args[0], args);
  if (mode == "execve") execve(args[0], args, environ);
  if (mode == "execl") execl(args[0], args[0], static_cast<char*>(nullptr));
  if (mode == "execvp") execvp(args[0], args);
  if (mode == "execveat") execveat(AT_FDCWD, args[0], args, environ, 0);
  if (mode == "fexecve") fexecve(open(args[0], O_RDONLY | O_CLOEXEC), args, environ);
  if (mode == "number") syscall(SYS_execve, args[0], args, environ);
  if (mode == "number-at") syscall(SYS_execveat, AT_FDCWD, args[0], args, environ, 0);
  _exit(126);
}

// From a small stack, with more variables than it has room for.
void* become_on_small_stack(void* args) {
  std::vector<std::string> texts(1500);
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = "MANY_" + std::to_string(i) + "=x";
  std::vector<char*> variables;
  for (char** v = environ; *v != nullptr; ++v) variables.push_back(*v);
  for (auto& t : texts) variables.push_back(t.data());
  variables.push_back(nullptr);
  auto** const words = static_cast<char**>(args);
  enter(is_by_number);
  execve(words[0], words, variables.data());
  _exit(126);
}
void become_crowded(char** args) {
  pthread_attr_t how;
  pthread_t thread;
  CHECK(pthread_attr_init(&how) == 0);
  CHECK(pthread_attr_setstacksize(&how, PTHREAD_STACK_MIN) == 0);
  CHECK(pthread_create(&thread, &how, become_on_small_stack, args) == 0);
  pthread_join(thread, nullptr);
  _exit(125);
}

int copy_of(char const* command) {
  FILE* const from = popen(command, "r");
  CHECK(from != nullptr);
  for (int c; (c = fgetc(from)) != EOF;) putchar(c);
  fflush(stdout);
  int const status = pclose(from);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc >= 3);
  is_by_number = argv[1] == std::string("by-number");
  is_second = is_by_number || argv[1] == std::string("twice");
  argv += is_second;
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
  if (mode == "spawn" || mode == "spawnp") {
    enter(is_by_number);
    auto* const start = mode == "spawn" ? posix_spawn : posix_spawnp;
    CHECK(start(&child, args[0], nullptr, nullptr, args, environ) == 0);
  } else if (mode == "system") {
    enter(is_by_number);
    int const status = system(args[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  } else if (mode == "popen") {
    enter(is_by_number);
    return copy_of(args[0]);
  } else if (mode == "vfork") {
    child = vfork();
    if (child == 0) become("execve", args);
  } else if (mode == "crowded") {
    become_crowded(args);
  } else {
    become(mode, args);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
