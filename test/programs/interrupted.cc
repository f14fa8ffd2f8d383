// SPDX-License-Identifier: Apache-2.0
// Reads of a file never end with EINTR, also when a handler without SA_RESTART runs while the
// thread waits for tokens; and the handler runs at once, not after the wait.
#include "check.h"

#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <thread>

namespace {
std::atomic<double> sent{0};
std::atomic<double> worst{0};
std::atomic<int> handled{0};

void on_usr(int) {
  double const late = now_s() - sent.load();
  if (late > worst.load()) worst = late;
  handled.fetch_add(1);
}
}  // namespace

int main(int argc, char** argv) {
  int const fd = make_file(folder(argc, argv) + "/interrupted");
  for (int flags : {0, SA_RESTART}) {
    struct sigaction action {};
    action.sa_handler = on_usr;
    action.sa_flags = flags;
    CHECK(sigaction(SIGUSR1, &action, nullptr) == 0);
    pthread_t const self = pthread_self();
    handled = 0;
    std::atomic<bool> stop{false};
    std::thread sender([&] {
      while (!stop) {
        nap_ms(25);
        sent = now_s();
        pthread_kill(self, SIGUSR1);
      }
    });
    double const end = now_s() + 0.7;
    char byte;
    struct stat s;
    while (now_s() < end) CHECK(pread(fd, &byte, 1, 0) == 1 && fstat(fd, &s) == 0);
    stop = true;
    sender.join();
    CHECK(handled > 3);
  }
  CHECK(worst < 0.3);
  return 0;
}
