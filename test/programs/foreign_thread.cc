// SPDX-License-Identifier: Apache-2.0
// A child of a raw clone() in its parent's memory, whose thread memory is zeros, or begins with a
// word of its maker's: a browser's helper that shuts itself up is such a one. It calls a few
// functions of libc that need no more.
#include "check.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace {

constexpr std::size_t stack_bytes = 1 << 18;
std::string file, where;

int works() {
  char byte;
  struct stat st;
  int const fd = open(file.c_str(), O_RDONLY);
  if (fd < 0 || fstat(fd, &st) != 0 || pread(fd, &byte, 1, 0) < 0) return 1;
  if (stat(file.c_str(), &st) != 0 || access(file.c_str(), R_OK) != 0) return 2;
  if (chdir(where.c_str()) != 0 || dup2(fd, fd + 1) < 0 || close(fd) != 0) return 3;
  return 0;
}

int child(void*) {
  int const status = works();
  syscall(SYS_exit, status);
  __builtin_unreachable();
}

char* room(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  return static_cast<char*>(at);
}

}  // namespace

int main(int argc, char** argv) {
  where = folder(argc, argv);
  file = where + "/zeros";
  close(make_file(file));
  char* const stack = room(stack_bytes);
  char* const memory = room(stack_bytes) + stack_bytes / 2;
  for (int i = 0; i < 4; ++i) {
    if (i == 3) *reinterpret_cast<uintptr_t*>(memory) = 0x1234;
    pid_t const pid =
        clone(child, stack + stack_bytes, CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD, nullptr,
              nullptr, memory);
    CHECK(pid > 0);
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(access(file.c_str(), R_OK) == 0);
  }
}
