// SPDX-License-Identifier: Apache-2.0
// A program forks while its other threads wait for tokens. The child has only the forking thread:
// whatever another thread held is held for ever in it. Six children,
// by fork, _Fork and the bare system call, each does calls and ends.
#include "check.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

int main(int argc, char** argv) {
  std::string const file = folder(argc, argv) + "/fork_threads";
  int const fd = make_file(file);
  std::atomic<bool> stop{false};
  auto const work = [&] {
    char byte;
    while (!stop) CHECK(pread(fd, &byte, 1, 0) == 1);
  };
  std::thread first(work);
  std::thread second(work);
  for (int i = 0; i < 6; ++i) {
    nap_ms(40);
    pid_t const child = i % 3 == 0   ? fork()
                        : i % 3 == 1 ? _Fork()
                                     : static_cast<pid_t>(syscall(SYS_fork));
    CHECK(child >= 0);
    if (child == 0) {
      alarm(3);
      char byte;
      struct stat s;
      for (int k = 0; k < 5; ++k) CHECK(pread(fd, &byte, 1, 0) == 1 && stat(file.c_str(), &s) == 0);
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  stop = true;
  first.join();
  second.join();
  return 0;
}
