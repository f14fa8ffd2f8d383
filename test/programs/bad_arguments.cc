// SPDX-License-Identifier: Apache-2.0
// Arguments that the kernel refuses must be refused by the kernel, not kill the program on the way:
// unmapped pointers, names that end at the last byte of a page, names that are too long, vectors
// that are too many, sizes and offsets out of range.
#include "check.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <vector>

#define FAILS(call, wanted)   \
  do {                        \
    errno = 0;                \
    CHECK((call) == -1);      \
    CHECK(errno == (wanted)); \
  } while (0)

char const* volatile nowhere = reinterpret_cast<char const*>(16);
int volatile minus_one = -1;
char* volatile nowhere_too = reinterpret_cast<char*>(16);

namespace {
void bad_names(std::string const& dir) {
  struct stat s;
  FAILS(open(nowhere, O_RDONLY), EFAULT);
  FAILS(openat(AT_FDCWD, nowhere, O_RDONLY), EFAULT);
  FAILS(stat(nowhere, &s), EFAULT);
  FAILS(lstat(nowhere, &s), EFAULT);
  FAILS(access(nowhere, R_OK), EFAULT);
  FAILS(rename(nowhere, nowhere), EFAULT);
  FAILS(rename(dir.c_str(), nowhere), EFAULT);
  FAILS(unlink(nowhere), EFAULT);
  FAILS(mkdir(nowhere, 0700), EFAULT);
  FAILS(chdir(nowhere), EFAULT);
  FAILS(symlink(nowhere, nowhere), EFAULT);
  FAILS(open("", O_RDONLY), ENOENT);
  for (size_t length : {4095u, 4096u, 5000u, 200000u}) {
    std::string const name = "/" + std::string(length, 'n');
    FAILS(open(name.c_str(), O_RDONLY), ENAMETOOLONG);
    FAILS(stat(name.c_str(), &s), ENAMETOOLONG);
    std::string deep = dir;
    while (deep.size() < length) deep += "/.";
    FAILS(open((deep + "/none").c_str(), O_WRONLY),
          deep.size() + 6 > PATH_MAX ? ENAMETOOLONG : ENOENT);
  }
}

void at_the_edge(std::string const& dir) {
  std::string const file = dir + "/edge";
  auto* const page = static_cast<char*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
  char* const name = page + 4096 - file.size() - 1;
  memcpy(name, file.c_str(), file.size() + 1);
  struct stat s;
  int const fd = open(name, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && stat(name, &s) == 0 && access(name, R_OK) == 0 && close(fd) == 0);
}

void bad_vectors(int fd) {
  std::vector<iovec> parts(IOV_MAX + 1, iovec{nullptr, 0});
  iovec const* const bad = reinterpret_cast<iovec const*>(nowhere);
  FAILS(readv(fd, parts.data(), IOV_MAX + 1), EINVAL);
  FAILS(readv(fd, parts.data(), minus_one), EINVAL);
  FAILS(readv(fd, bad, 4), EFAULT);
  FAILS(writev(fd, bad, 4), EFAULT);
  FAILS(preadv(fd, bad, 4, 0), EFAULT);
  FAILS(preadv2(fd, bad, 4, 0, 0), EFAULT);
  parts[0] = parts[1] = iovec{nowhere_too, SIZE_MAX / 2};
  FAILS(readv(fd, parts.data(), 2), EFAULT);
  char byte;
  FAILS(pread(fd, &byte, 1, -5), EINVAL);
  FAILS(read(INT_MAX, &byte, 1), EBADF);
  FAILS(read(-100, &byte, 1), EBADF);
  FAILS(dup2(fd, INT_MAX), EBADF);
  FAILS(close(INT_MIN), EBADF);
  FAILS(openat(INT_MAX, "x", O_RDONLY), EBADF);
}

void bad_exec() {
  char name[] = "/bin/true";
  char* args[] = {name, nullptr};
  auto* const bad = reinterpret_cast<char* const*>(nowhere);
  FAILS(execve(name, args, bad), EFAULT);
  FAILS(execve(name, bad, args), EFAULT);
  FAILS(execve(nowhere, args, args), EFAULT);
  FAILS(execve("/none", args, args), ENOENT);
  char* wild[] = {nowhere_too, nullptr};
  FAILS(execve(name, args, wild), EFAULT);
}
}  // namespace

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  int const fd = make_file(dir + "/bad");
  bad_names(dir);
  at_the_edge(dir);
  bad_vectors(fd);
  bad_exec();
  return 0;
}
