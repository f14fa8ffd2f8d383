// SPDX-License-Identifier: Apache-2.0
// epoch_wait PATH...: says what sluice_epoch_wait says of each: ok, or the name of the error.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "sluice_order.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    int const fd = open(argv[i], O_RDONLY);
    std::puts(sluice_epoch_wait(fd) == 0 ? "ok" : strerrorname_np(errno));
    std::fflush(stdout);
    if (fd >= 0) close(fd);
  }
  return 0;
}
