// SPDX-License-Identifier: Apache-2.0
// 600 threads, all alive at once, ten stats each: more threads than there are counters of their
// own.
#include "check.h"

#include <pthread.h>

namespace {
std::string dir;
pthread_barrier_t all_there;

void* work(void*) {
  struct stat s;
  pthread_barrier_wait(&all_there);
  for (int i = 0; i < 10; ++i) CHECK(stat(dir.c_str(), &s) == 0);
  pthread_barrier_wait(&all_there);
  return nullptr;
}
}  // namespace

int main(int argc, char** argv) {
  constexpr int count = 600;
  dir = folder(argc, argv);
  pthread_t thread[count];
  pthread_attr_t small;
  CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 65536) == 0);
  CHECK(pthread_barrier_init(&all_there, nullptr, count) == 0);
  for (pthread_t& t : thread) CHECK(pthread_create(&t, &small, work, nullptr) == 0);
  for (pthread_t t : thread) CHECK(pthread_join(t, nullptr) == 0);
  return 0;
}
