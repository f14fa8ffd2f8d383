// SPDX-License-Identifier: Apache-2.0
// A call that succeeds leaves errno as it was (even while it waited for tokens); one that fails
// gives the errno of the bare call.
#include "check.h"

#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>

// Pointers the compiler cannot see through.
char const* volatile nowhere = nullptr;
void* volatile unmapped = reinterpret_cast<void*>(1);

#define KEEPS(call)       \
  do {                    \
    errno = 4242;         \
    CHECK((call) >= 0);   \
    CHECK(errno == 4242); \
  } while (0)
#define FAILS(call, wanted)   \
  do {                        \
    errno = 4242;             \
    CHECK((call) == -1);      \
    CHECK(errno == (wanted)); \
  } while (0)

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  std::string const file = dir + "/errno_kept";
  std::string const none = dir + "/none";
  std::string const below = file + "/x";
  int const fd = make_file(file);
  struct stat s;
  struct statfs f;
  char b[8];
  iovec part{b, 4};
  for (int i = 0; i < 30; ++i) {
    int more = -1;
    KEEPS(more = open(file.c_str(), O_RDWR));
    KEEPS(read(more, b, 4));
    KEEPS(pread(more, b, 4, 0));
    KEEPS(readv(more, &part, 1));
    KEEPS(write(more, b, 4));
    KEEPS(pwrite(more, b, 4, 0));
    KEEPS(fstat(more, &s));
    KEEPS(close(more));
    KEEPS(stat(file.c_str(), &s));
    KEEPS(lstat(file.c_str(), &s));
    KEEPS(access(file.c_str(), R_OK));
    KEEPS(statfs(file.c_str(), &f));
    KEEPS(chmod(file.c_str(), 0600));
    KEEPS(rename(file.c_str(), none.c_str()));
    KEEPS(rename(none.c_str(), file.c_str()));
    FAILS(open(none.c_str(), O_RDONLY), ENOENT);
    FAILS(open(file.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    FAILS(open(dir.c_str(), O_WRONLY), EISDIR);
    FAILS(stat(below.c_str(), &s), ENOTDIR);
    FAILS(stat(nowhere, &s), EFAULT);
    FAILS(read(-1, b, 1), EBADF);
    FAILS(read(fd, unmapped, 1), EFAULT);
    FAILS(pread(fd, b, 1, -1), EINVAL);
    FAILS(rename(none.c_str(), file.c_str()), ENOENT);
    FAILS(mkdir(dir.c_str(), 0700), EEXIST);
    FAILS(rmdir(file.c_str()), ENOTDIR);
    FAILS(unlink(none.c_str()), ENOENT);
    FAILS(close(9999), EBADF);
    FAILS(openat(fd, "x", O_RDONLY), ENOTDIR);
  }
  return 0;
}
