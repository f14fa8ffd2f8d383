// SPDX-License-Identifier: Apache-2.0
// Calls that are none of ours take no tokens: 300 each on a pipe, a socket, a terminal, devices, a
// file of /proc, and close of files. All together must be quick under any limit.
#include "check.h"

#include <pty.h>
#include <sys/socket.h>

namespace {
char bytes[64];

void through(int from, int to) {
  for (int i = 0; i < 300; ++i) {
    CHECK(write(to, "x\n", 2) == 2);
    CHECK(read(from, bytes, sizeof bytes) > 0);
  }
}
}  // namespace

int main(int argc, char** argv) {
  std::string const file = folder(argc, argv) + "/never_delayed";
  close(make_file(file));
  int open_files[8];
  for (int& fd : open_files) fd = open(file.c_str(), O_RDONLY);
  int pair[2];
  double const begin = now_s();
  CHECK(pipe(pair) == 0);
  through(pair[0], pair[1]);
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  through(pair[0], pair[1]);
  CHECK(openpty(&pair[0], &pair[1], nullptr, nullptr, nullptr) == 0);
  through(pair[0], pair[1]);
  int const null = open("/dev/null", O_RDWR);
  int const zero = open("/dev/zero", O_RDWR);
  int const proc = open("/proc/self/stat", O_RDONLY);
  CHECK(null >= 0 && zero >= 0 && proc >= 0);
  struct stat s;
  for (int i = 0; i < 300; ++i) {
    CHECK(write(null, "x", 1) == 1 && read(zero, bytes, 1) == 1);
    CHECK(pread(proc, bytes, 1, 0) == 1 && fstat(proc, &s) == 0 && fstat(null, &s) == 0);
  }
  for (int fd : open_files) CHECK(close(fd) == 0);
  CHECK(now_s() - begin < 1.0);
  return 0;
}
