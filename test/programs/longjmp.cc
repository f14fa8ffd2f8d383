// SPDX-License-Identifier: Apache-2.0
// A handler leaves with siglongjmp while its thread waits for tokens; nothing that the wrapper held
// or noted may stay behind: afterwards calls from this and from another thread go on as before.
#include "check.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include <thread>

namespace {
sigjmp_buf back;
void on_alarm(int) { siglongjmp(back, 1); }
}  // namespace

int main(int argc, char** argv) {
  int const fd = make_file(folder(argc, argv) + "/longjmp");
  CHECK(signal(SIGALRM, on_alarm) != SIG_ERR);
  volatile int jumps = 0;
  while (jumps < 10) {
    if (sigsetjmp(back, 1) != 0) {
      jumps = jumps + 1;
      continue;
    }
    itimerval const once{{0, 0}, {0, 30000}};
    CHECK(setitimer(ITIMER_REAL, &once, nullptr) == 0);
    char byte;
    for (;;) CHECK(pread(fd, &byte, 1, 0) == 1);
  }
  std::thread([&] {
    char byte;
    for (int i = 0; i < 20; ++i) CHECK(pread(fd, &byte, 1, 0) == 1);
  }).join();
  return 0;
}
