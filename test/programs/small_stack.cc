// SPDX-License-Identifier: Apache-2.0
// Threads with the smallest stack there is do every kind of call: the wrappers may use neither much
// stack nor much thread-local storage (which lies in the same block).
#include "check.h"

#include <limits.h>
#include <pthread.h>

namespace {
std::string file;

void* work(void*) {
  struct stat s;
  char byte;
  for (int i = 0; i < 20; ++i) {
    int const fd = open(file.c_str(), O_RDWR);
    CHECK(fd >= 0 && pread(fd, &byte, 1, 0) == 1 && pwrite(fd, "x", 1, 0) == 1);
    CHECK(fstat(fd, &s) == 0 && stat(file.c_str(), &s) == 0 && close(fd) == 0);
    int const other = open("small_relative", O_RDWR | O_CREAT, 0600);
    CHECK(other >= 0 && close(other) == 0);
    CHECK(access(file.c_str(), R_OK) == 0 && rename(file.c_str(), file.c_str()) == 0);
  }
  return nullptr;
}
}  // namespace

int main(int argc, char** argv) {
  file = folder(argc, argv) + "/small_stack";
  CHECK(chdir(folder(argc, argv).c_str()) == 0);
  close(make_file(file));
  pthread_attr_t attributes;
  CHECK(pthread_attr_init(&attributes) == 0);
  CHECK(pthread_attr_setstacksize(&attributes, static_cast<size_t>(PTHREAD_STACK_MIN)) == 0);
  for (int i = 0; i < 4; ++i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, work, nullptr) == 0);
    CHECK(pthread_join(thread, nullptr) == 0);
  }
  return 0;
}
