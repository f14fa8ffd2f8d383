// SPDX-License-Identifier: Apache-2.0
// One thread starts programs, another closes descriptor 0 and opens a file, which comes to stand
// there: nobody else takes descriptors. Status 1: somebody did.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

int main() {
  std::atomic<bool> is_over{false};
  std::thread starter([&] {
    char name[] = "true";
    char* const arguments[] = {name, nullptr};
    for (int i = 0; i < 400; ++i) {
      pid_t child = 0;
      if (posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environ) == 0)
        waitpid(child, nullptr, 0);
    }
    is_over = true;
  });
  int elsewhere = 0;
  while (!is_over) {
    close(0);
    int const fd = open("/dev/null", O_RDONLY);
    elsewhere += fd != 0;
    if (fd > 2) close(fd);
  }
  starter.join();
  if (elsewhere != 0) printf("%d times elsewhere\n", elsewhere);
  return elsewhere != 0;
}
