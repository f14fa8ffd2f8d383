// SPDX-License-Identifier: Apache-2.0
// sandbox_tries DIR: two threads ask at once, again and again, whether there are seccomp filters,
// by a null one, which is refused. Afterwards a thread looks at a name and reads 100 times.
// sandbox_tries DIR fork: a thread tries a filter that is refused, while 50 children come that each
// look at a name 20 times.
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>

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
std::atomic<bool> is_over{false};
std::atomic<int> tries{0};

void* try_all_the_time(void*) {
  sock_filter no_filter[] = {{0xffff, 0, 0, 0}};
  sock_fprog const program = {1, no_filter};
  while (!is_over.load()) {
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1 && errno == EINVAL);
    tries.fetch_add(1);
  }
  return nullptr;
}

void fork_beside_tries() {
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, nullptr, try_all_the_time, nullptr) == 0);
  while (tries.load() < 100) nap_ms(1);
  for (int i = 0; i < 50; ++i) {
    pid_t const child = fork();
    if (child == 0) {
      struct stat st;
      for (int k = 0; k < 20; ++k) stat(file.c_str(), &st);
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  is_over.store(true);
  CHECK(pthread_join(thread, nullptr) == 0);
}
}  // namespace

int main(int argc, char** argv) {
  file = folder(argc, argv) + "/sandbox_tries";
  if (argc > 2) {
    fork_beside_tries();
    return 0;
  }
  pthread_t threads[2];
  for (pthread_t& t : threads) CHECK(pthread_create(&t, nullptr, ask, nullptr) == 0);
  for (pthread_t t : threads) CHECK(pthread_join(t, nullptr) == 0);
  CHECK(pthread_create(&threads[0], nullptr, use, nullptr) == 0);
  CHECK(pthread_join(threads[0], nullptr) == 0);
  return 0;
}
