// SPDX-License-Identifier: Apache-2.0
// headless CALLS LINK: its first thread ends, and the second opens LINK so often, writes a kibibyte
// and closes it. Nothing stands in /proc/self then.
#include <pthread.h>

#include "check.h"

namespace {

char** words;

bool has_first_ended() {
  char line[512] = {};
  int const fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0 && read(fd, line, sizeof line - 1) > 0 && close(fd) == 0);
  return strrchr(line, ')')[2] == 'Z';
}

void* work(void*) {
  while (!has_first_ended()) nap_ms(1);
  char const bytes[1024] = {};
  for (int left = atoi(words[1]); left > 0; --left) {
    int const fd = open(words[2], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, bytes, sizeof bytes) == sizeof bytes && close(fd) == 0);
  }
  exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  words = argv;
  pthread_t second;
  CHECK(pthread_create(&second, nullptr, work, nullptr) == 0);
  pthread_exit(nullptr);
}
