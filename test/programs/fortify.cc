// SPDX-License-Identifier: Apache-2.0
// build: -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -D_FILE_OFFSET_BITS=64
// fortify DIR: with these flags the compiler calls __open64_2, __read_chk, __pread64_chk,
// __fgets_chk and the 64 names. 40 opens, 40 reads of 8 bytes, 40 preads, 40 stats, 1 line.
#include "check.h"

int volatile read_only = O_RDONLY;
size_t volatile amount = 8;

int main(int argc, char** argv) {
  std::string const file = folder(argc, argv) + "/file";
  char bytes[16];
  struct stat s;
  for (int i = 0; i < 40; ++i) {
    int const fd = open(file.c_str(), read_only);
    CHECK(fd >= 0 && read(fd, bytes, amount) == 8 && pread(fd, bytes, amount, 1) == 8);
    CHECK(fstat(fd, &s) == 0 && close(fd) == 0);
  }
  FILE* f = fopen(file.c_str(), "r");
  CHECK(f && fgets(bytes, static_cast<int>(amount), f) && fclose(f) == 0);
  return 0;
}
