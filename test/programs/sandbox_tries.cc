// SPDX-License-Identifier: Apache-2.0
// sandbox_tries DIR: two threads ask at once, again and again, whether there are seccomp filters,
// by a null one, which is refused. Afterwards a thread looks at a name and reads 100 times.
#include "check.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>

namespace {
std::string file;

void* ask(void*) {
  for (int i = 0; i < 50'000; ++i)
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr) == -1 && errno == EFAULT);
  return nullptr;
}

void* use(void*) {
  int const fd = make_file(file);
  struct stat st;
  char byte;
  for (int i = 0; i < 100; ++i) CHECK(stat(file.c_str(), &st) == 0 && pread(fd, &byte, 1, 0) == 1);
  return nullptr;
}
}  // namespace

int main(int argc, char** argv) {
  file = folder(argc, argv) + "/sandbox_tries";
  pthread_t threads[2];
  for (pthread_t& t : threads) CHECK(pthread_create(&t, nullptr, ask, nullptr) == 0);
  for (pthread_t t : threads) CHECK(pthread_join(t, nullptr) == 0);
  CHECK(pthread_create(&threads[0], nullptr, use, nullptr) == 0);
  CHECK(pthread_join(threads[0], nullptr) == 0);
  return 0;
}
