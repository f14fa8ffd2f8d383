// SPDX-License-Identifier: Apache-2.0
// lease_signals DIR: a read is interrupted before each of its instructions by a handler that reads
// as well, and so spends from the tokens the thread has set aside (that happens some 60 in).
// Afterwards 30 MB are read; the milliseconds that took are printed: a limit of 20 MB/s must still
// be one.
#include "stepped.h"

namespace {
int fd;
char room[4096];
int reads;

void read_some() {
  for (int i = 0; i < reads; ++i) CHECK(pread(fd, room, 64, 0) == 64);
}
}  // namespace

int main(int argc, char** argv) {
  fd = make_file(folder(argc, argv) + "/lease_signals");
  catch_steps(read_some);
  for (reads = 0; reads <= 16; ++reads)
    for (long at = 20; at < 100; ++at) interrupted(at, [] { CHECK(pread(fd, room, 64, 0) == 64); });
  double const begin = now_s();
  for (int i = 0; i < 7500; ++i) CHECK(pread(fd, room, 4096, 0) == 4096);
  printf("%d\n", static_cast<int>((now_s() - begin) * 1000));
  return 0;
}
