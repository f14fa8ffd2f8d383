// SPDX-License-Identifier: Apache-2.0
// Forbids itself to read the processor's counter of time, and goes on with a file. Prints how many
// times it has read it. Where a processor has no such switch, it reads all the same.
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char** argv) {
  char byte;
  int count = 0;
  if (argc < 2) return 2;
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
  for (int i = 0; i < 200; ++i) {
    int const fd = open(argv[1], O_RDONLY);
    count += read(fd, &byte, 1) == 1;
    close(fd);
  }
  dprintf(1, "%d\n", count);
  return 0;
}
