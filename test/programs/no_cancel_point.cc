// SPDX-License-Identifier: Apache-2.0
// stat, rename and fstat are no cancellation points: a thread that is cancelled while it waits for
// tokens in them goes on to the next real one.
#include "check.h"

#include <pthread.h>

namespace {
std::string dir;
int done;

void* work(void*) {
  struct stat s;
  for (done = 0; done < 30; ++done) CHECK(stat(dir.c_str(), &s) == 0);
  pthread_testcancel();
  return nullptr;
}
}  // namespace

int main(int argc, char** argv) {
  dir = folder(argc, argv);
  pthread_t thread;
  CHECK(pthread_create(&thread, nullptr, work, nullptr) == 0);
  nap_ms(60);
  pthread_cancel(thread);
  void* result = nullptr;
  CHECK(pthread_join(thread, &result) == 0);
  CHECK(done == 30);
  return 0;
}
