// SPDX-License-Identifier: Apache-2.0
// build: -rdynamic
// Calls before any constructor: .preinit_array of the program runs before the constructor of every
// library, the preloaded one included, so nothing of it is set up yet.
#include "check.h"

#include <dirent.h>

namespace {
int calls_made;

void before_all() {
  struct stat s;
  char byte;
  int const fd = open("/proc/self/exe", O_RDONLY);
  if (fd < 0 || read(fd, &byte, 1) != 1 || fstat(fd, &s) != 0 || close(fd) != 0) return;
  if (stat("/", &s) != 0 || access("/", R_OK) != 0) return;
  void* p = malloc(100000);
  free(p);
  DIR* d = opendir("/");
  if (!d || !readdir(d) || closedir(d) != 0) return;
  FILE* f = fopen("/proc/self/exe", "r");
  if (!f || getc(f) != 0x7f || fclose(f) != 0) return;
  calls_made = 1;
}

__attribute__((section(".preinit_array"), used)) void (*first)() = before_all;
}  // namespace

int main(int argc, char** argv) {
  CHECK(calls_made);
  int const fd = make_file(folder(argc, argv) + "/early");
  char byte;
  CHECK(pread(fd, &byte, 1, 0) == 1);
  return 0;
}
