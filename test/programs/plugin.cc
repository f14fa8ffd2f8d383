// SPDX-License-Identifier: Apache-2.0
// build: -shared -fPIC
// A plug-in: loaded with dlopen(RTLD_DEEPBIND) or dlmopen into a namespace of its own.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" int plugin_work(char const* dir) {
  char path[4096];
  snprintf(path, sizeof path, "%s/plugin", dir);
  int const fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || write(fd, "x", 1) != 1) return 1;
  char byte;
  for (int i = 0; i < 20; ++i)
    if (pread(fd, &byte, 1, 0) != 1) return 2;
  FILE* f = fopen(path, "r");
  if (!f || getc(f) != 'x' || fclose(f) != 0) return 3;
  return close(fd);
}
