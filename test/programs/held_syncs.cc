// SPDX-License-Identifier: Apache-2.0
// build: -shared -fPIC
// To be preloaded: a disk that is slow for as long as the test wants. Each fsync and fdatasync
// adds a byte to SYNCS_BEGUN, and waits while the file SYNCS_HELD is there.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace {

int held_sync(char const* name, int fd) {
  char const *const begun = getenv("SYNCS_BEGUN"), *const held = getenv("SYNCS_HELD");
  if (begun == nullptr || held == nullptr) abort();
  int const count = open(begun, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (count < 0 || write(count, ".", 1) != 1 || close(count) != 0) abort();
  while (access(held, F_OK) == 0) usleep(5000);
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, name))(fd);
}

}  // namespace

extern "C" int fsync(int fd) { return held_sync("fsync", fd); }
extern "C" int fdatasync(int fd) { return held_sync("fdatasync", fd); }
