// SPDX-License-Identifier: Apache-2.0
// build: -shared -fPIC
// A library, to be preloaded after ours, whose constructor runs before ours and does I/O. It also
// wraps open and counts, so that a program can see (opens_seen) that both are in the chain.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {
int opens;
}

extern "C" int opens_seen() { return opens; }

extern "C" int open(char const* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int const mode = va_arg(more, int);
  va_end(more);
  ++opens;
  using open_type = int (*)(char const*, int, ...);
  return reinterpret_cast<open_type>(dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}

__attribute__((constructor)) static void first() {
  struct stat s;
  char byte;
  int const fd = openat(AT_FDCWD, "/proc/self/exe", O_RDONLY);
  if (fd < 0 || read(fd, &byte, 1) != 1 || fstat(fd, &s) != 0 || close(fd) != 0) abort();
  FILE* f = fopen("/etc/passwd", "r");
  if (f) {
    if (getc(f) == EOF || fclose(f) != 0) abort();
  }
}
