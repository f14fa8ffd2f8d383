// SPDX-License-Identifier: Apache-2.0
// plain_io DIR: C that any libc compiles: for musl and for static programs.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char** argv) {
  char path[4096];
  char byte = 0;
  struct stat s;
  snprintf(path, sizeof path, "%s/plain_io", argc > 1 ? argv[1] : ".");
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0640);
  if (fd < 0 || write(fd, "x", 1) != 1) return 1;
  for (int i = 0; i < 50; ++i)
    if (pread(fd, &byte, 1, 0) != 1 || byte != 'x' || stat(path, &s) != 0) return 2;
  FILE* f = fopen(path, "r");
  if (!f || getc(f) != 'x' || fclose(f) != 0) return 3;
  if (fsync(fd) != 0 || close(fd) != 0 || unlink(path) != 0) return 4;
  return puts("done") < 0;
}
