// SPDX-License-Identifier: Apache-2.0
// Standard output and error are closed or full. errno of a failed call stays the call's own, and a
// file that gets number 1 or 2 holds what the program wrote, nothing else.
#include "check.h"

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  int const spare = fcntl(2, F_DUPFD_CLOEXEC, 10);
  struct stat s;
  int const full = open("/dev/full", O_WRONLY);
  CHECK(full >= 0 && dup2(full, 1) == 1);
  for (int i = 0; i < 50; ++i) {
    CHECK(open((dir + "/missing").c_str(), O_RDONLY) == -1 && errno == ENOENT);
    CHECK(stat((dir + "/missing").c_str(), &s) == -1 && errno == ENOENT);
    CHECK(read(9999, &s, 1) == -1 && errno == EBADF);
  }
  close(full);
  close(1);
  int const one = open((dir + "/one").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(one == 1);
  close(2);
  int const two = open((dir + "/two").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  bool const right = two == 2;
  if (spare >= 0) dup2(spare, 2);
  CHECK(right);
  for (int i = 0; i < 50; ++i) CHECK(write(1, "x", 1) == 1);
  CHECK(fstat(1, &s) == 0 && s.st_size == 50);
  CHECK(stat((dir + "/two").c_str(), &s) == 0 && s.st_size == 0);
  return 0;
}
