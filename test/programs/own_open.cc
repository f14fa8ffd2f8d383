// SPDX-License-Identifier: Apache-2.0
// build: -rdynamic
// The program has functions of its own called open, read, malloc-free helpers and `close`, exported
// like any symbol of the program: a library that calls libc by name would land in them.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace {
int calls;
}

extern "C" int open(char const*, int, ...) {
  ++calls;
  return -7;
}
extern "C" ssize_t pread(int, void*, size_t, off_t) {
  ++calls;
  return -7;
}
extern "C" int fstat(int, struct stat*) noexcept {
  ++calls;
  return -7;
}
extern "C" long syscall(long, ...) noexcept {
  ++calls;
  return -7;
}

int main(int argc, char** argv) {
  std::string const dir = argc > 1 ? argv[1] : ".";
  struct stat s;
  for (int i = 0; i < 20; ++i)
    if (stat(dir.c_str(), &s) != 0 || access(dir.c_str(), R_OK) != 0) return 2;
  if (calls != 0) return 3;
  return open("x", 0) == -7 && calls == 1 ? 0 : 4;
}
