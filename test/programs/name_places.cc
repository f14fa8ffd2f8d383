// SPDX-License-Identifier: Apache-2.0
// name_places DIR: 1,000 stats each by a name on the first stack, in the image, in the heap, and on
// the stack and in the heap of a thread. Before that it has attached shared memory beside them,
// given it back, and asked by number where the break is.
#include "check.h"

#include <pthread.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <cstring>

namespace {
std::string dir;

void look(char* room) {
  struct stat s;
  strcpy(room, dir.c_str());
  for (int i = 0; i < 1000; ++i) CHECK(stat(room, &s) == 0);
}

char in_image[256];

void* on_stack(void*) {
  char here[256];
  look(here);
  return nullptr;
}

void* of_thread(void*) {
  on_stack(nullptr);
  auto* const in_heap = static_cast<char*>(malloc(256));
  look(in_heap);
  free(in_heap);
  return nullptr;
}
}  // namespace

int main(int argc, char** argv) {
  dir = folder(argc, argv);
  int const id = shmget(IPC_PRIVATE, 4096, 0600);
  CHECK(id >= 0);
  void* const shared = shmat(id, nullptr, 0);
  CHECK(shmctl(id, IPC_RMID, nullptr) == 0 && shmdt(shared) == 0);
  CHECK(syscall(SYS_brk, syscall(SYS_brk, 0)) != 0);
  on_stack(nullptr);
  look(in_image);
  auto* const in_heap = static_cast<char*>(malloc(256));
  look(in_heap);
  free(in_heap);
  pthread_t thread;
  CHECK(pthread_create(&thread, nullptr, of_thread, nullptr) == 0);
  CHECK(pthread_join(thread, nullptr) == 0);
  return 0;
}
