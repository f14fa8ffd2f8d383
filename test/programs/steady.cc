// SPDX-License-Identifier: Apache-2.0
// steady SECONDS DIR: reads one byte of DIR/file at a time for so long and checks each result; says
// how many. For whatever is done to the stage's segment meanwhile. Also opens, so files come and
// go.
#include "check.h"

int main(int argc, char** argv) {
  CHECK(argc == 3);
  std::string const file = std::string(argv[2]) + "/file";
  double const end = now_s() + atof(argv[1]);
  long count = 0;
  while (now_s() < end) {
    int const fd = open(file.c_str(), O_RDONLY);
    char byte = 0;
    CHECK(fd >= 0 && read(fd, &byte, 1) == 1 && byte == 'x' && close(fd) == 0);
    ++count;
  }
  printf("%ld\n", count);
  return 0;
}
