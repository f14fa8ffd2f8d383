// SPDX-License-Identifier: Apache-2.0
// Programs that close every descriptor they did not open: by a loop, by closefrom, by close_range.
// Afterwards numbers are given out from 3 on, as bare, and what lands in them is only ours.
#include "check.h"

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  char byte;
  for (int way = 0; way < 3; ++way) {
    if (way == 0)
      for (int i = 3; i < 1024; ++i) close(i);
    if (way == 1) closefrom(3);
    if (way == 2) CHECK(close_range(3, ~0u, 0) == 0);
    std::string const file = dir + "/close_all" + std::to_string(way);
    int const fd = make_file(file, 64);
    CHECK(fd == 3);
    for (int i = 0; i < 20; ++i) {
      int const more = open(file.c_str(), O_RDONLY);
      CHECK(more == 4 && read(more, &byte, 1) == 1 && byte == 'x' && close(more) == 0);
    }
    struct stat s;
    CHECK(fstat(fd, &s) == 0 && s.st_size == 64);
  }
  return 0;
}
