// SPDX-License-Identifier: Apache-2.0
// Threads are cancelled while they wait for tokens and while they block in a read of a pipe. The
// cleanup handlers run, join returns, and the calls of the others go on.
#include "check.h"

#include <pthread.h>

namespace {
int fd;
int pipes[2];
int cleaned;

void cleanup(void*) { ++cleaned; }

void* read_file(void*) {
  pthread_cleanup_push(cleanup, nullptr);
  char byte;
  for (;;) CHECK(pread(fd, &byte, 1, 0) == 1);
  pthread_cleanup_pop(0);
  return nullptr;
}

void* read_pipe(void*) {
  pthread_cleanup_push(cleanup, nullptr);
  char byte;
  CHECK(read(pipes[0], &byte, 1) < 0);
  pthread_cleanup_pop(0);
  return nullptr;
}

void cancel_one(void* (*body)(void*)) {
  pthread_t thread;
  CHECK(pthread_create(&thread, nullptr, body, nullptr) == 0);
  nap_ms(30);
  CHECK(pthread_cancel(thread) == 0);
  void* result = nullptr;
  timespec limit{};
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 2;
  CHECK(pthread_timedjoin_np(thread, &result, &limit) == 0);
  CHECK(result == PTHREAD_CANCELED);
}
}  // namespace

// cancel DIR stay: one thread is cancelled in its wait, and the program says its pid and stays
// a while.
int stay() {
  cancel_one(read_file);
  printf("%d\n", getpid());
  fflush(stdout);
  nap_ms(3000);
  return 0;
}

int main(int argc, char** argv) {
  fd = make_file(folder(argc, argv) + "/cancel");
  if (argc > 2) return stay();
  CHECK(pipe(pipes) == 0);
  for (int i = 0; i < 5; ++i) {
    cancel_one(read_file);
    cancel_one(read_pipe);
  }
  CHECK(cleaned == 10);
  char byte;
  for (int i = 0; i < 10; ++i) CHECK(pread(fd, &byte, 1, 0) == 1);
  return 0;
}
