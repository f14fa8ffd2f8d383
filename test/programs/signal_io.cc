// SPDX-License-Identifier: Apache-2.0
// A timer signal interrupts the thread anywhere, also while it waits for tokens, and its handler
// does I/O itself: open, read, write, stat are async-signal-safe. No call may fail or hang.
#include "check.h"

#include <signal.h>
#include <sys/time.h>

namespace {
std::string file;
volatile sig_atomic_t handled;

void on_alarm(int) {
  int const kept = errno;
  struct stat s;
  char byte;
  int const fd = open(file.c_str(), O_RDWR);
  CHECK(fd >= 0 && read(fd, &byte, 1) == 1 && write(fd, "x", 1) == 1);
  CHECK(stat(file.c_str(), &s) == 0 && fsync(fd) == 0 && close(fd) == 0);
  handled = handled + 1;
  errno = kept;
}
}  // namespace

int main(int argc, char** argv) {
  file = folder(argc, argv) + "/signal_io";
  int const fd = make_file(file);
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
  itimerval every{{0, 20000}, {0, 20000}};
  CHECK(setitimer(ITIMER_REAL, &every, nullptr) == 0);
  // So many that most of them wait below the limits, however slow the disk is.
  for (int round = 0; round < 80 || handled <= 5; ++round) {
    char byte;
    struct stat s;
    CHECK(pread(fd, &byte, 1, 0) == 1 && stat(file.c_str(), &s) == 0);
  }
  every = {};
  CHECK(setitimer(ITIMER_REAL, &every, nullptr) == 0);
  return 0;
}
