// SPDX-License-Identifier: Apache-2.0
// The third argument of open counts with O_CREAT and with O_TMPFILE (which contains O_DIRECTORY).
#include "check.h"

namespace {
unsigned mode_of(int fd) {
  struct stat s;
  CHECK(fd >= 0 && fstat(fd, &s) == 0 && close(fd) == 0);
  return s.st_mode & 07777;
}
}  // namespace

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  std::string const file = dir + "/modes";
  umask(0);
  for (unsigned mode : {0640u, 0604u, 0755u}) {
    CHECK(mode_of(open(dir.c_str(), O_TMPFILE | O_RDWR, mode)) == mode);
    CHECK(mode_of(openat(AT_FDCWD, dir.c_str(), O_TMPFILE | O_WRONLY, mode)) == mode);
    CHECK(mode_of(open64(dir.c_str(), O_TMPFILE | O_RDWR, mode)) == mode);
    CHECK(mode_of(open(file.c_str(), O_CREAT | O_RDWR, mode)) == mode && unlink(file.c_str()) == 0);
    CHECK(mode_of(openat64(AT_FDCWD, file.c_str(), O_CREAT | O_RDWR, mode)) == mode);
    CHECK(unlink(file.c_str()) == 0);
    CHECK(mode_of(creat(file.c_str(), mode)) == mode && unlink(file.c_str()) == 0);
  }
  int const d = open(dir.c_str(), O_DIRECTORY | O_RDONLY);
  CHECK(d >= 0);
  return 0;
}
