// SPDX-License-Identifier: Apache-2.0
// killer KILLS DIR: KILLS children, up to eight at a time, which read, open and stat without pause;
// each is killed after a random 0 to 3 ms, so inside a wait, a booking, a refund, or (every fourth
// is executed anew) while it attaches. Nothing is printed; the one who asks looks at the rate
// after.
#include "check.h"

#include <signal.h>
#include <sys/wait.h>

namespace {
std::string file;

[[noreturn]] void suffer(char** argv, bool anew) {
  if (anew) {
    char forever[] = "forever";
    char* args[] = {argv[0], forever, argv[2], nullptr};
    execv("/proc/self/exe", args);
    _exit(3);
  }
  int const fd = open(file.c_str(), O_RDONLY);
  struct stat s;
  char byte;
  for (;;)
    if (pread(fd, &byte, 1, 0) != 1 || stat(file.c_str(), &s) != 0) _exit(4);
}
}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  file = std::string(argv[2]) + "/file";
  if (strcmp(argv[1], "forever") == 0) suffer(argv, false);
  srandom(20);
  int const kills = atoi(argv[1]);
  pid_t child[8] = {};
  for (int i = 0; i < kills; ++i) {
    pid_t& slot = child[i % 8];
    if (slot > 0) {
      int status = 0;
      CHECK(kill(slot, SIGKILL) == 0 && waitpid(slot, &status, 0) == slot);
      CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    slot = fork();
    CHECK(slot >= 0);
    if (slot == 0) suffer(argv, i % 4 == 0);
    timespec t{0, random() % 3000000};
    nanosleep(&t, nullptr);
  }
  for (pid_t slot : child)
    if (slot > 0) kill(slot, SIGKILL);
  while (wait(nullptr) > 0) {
  }
  return 0;
}
