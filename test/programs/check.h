// SPDX-License-Identifier: Apache-2.0
// What every guest program shares. A guest is silent and ends with 0 when all was as a bare system
// would have it; else it says what was not, on standard error, and ends with 1. It never asks
// whether a stage is loaded: the same binary runs bare, under the naive shim and under sluice.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <string>

#define CHECK(condition)                                       \
  do {                                                         \
    if (!(condition)) give_up(__FILE__, __LINE__, #condition); \
  } while (0)

[[noreturn]] inline void give_up(char const* file, int line, char const* what) {
  char text[512];
  int const n =
      snprintf(text, sizeof text, "%s:%d: not so: %s (errno %d)\n", file, line, what, errno);
  if (write(2, text, static_cast<size_t>(n)) < 0) _exit(2);
  _exit(1);
}

inline double now_s() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

inline void nap_ms(long ms) {
  timespec t{ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&t, &t) != 0) {
  }
}

/// The scratch directory of the run: the first argument, else the working directory.
inline std::string folder(int argc, char** argv) { return argc > 1 ? argv[1] : "."; }

/// Makes a file of `size` bytes and gives a descriptor open for reading and writing.
inline int make_file(std::string const& path, size_t size = 4096) {
  int const fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK(fd >= 0);
  std::string const bytes(size, 'x');
  for (size_t done = 0; done < size;) {
    ssize_t const n = pwrite(fd, bytes.data() + done, size - done, static_cast<off_t>(done));
    CHECK(n > 0);
    done += static_cast<size_t>(n);
  }
  return fd;
}
