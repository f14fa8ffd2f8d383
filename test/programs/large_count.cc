// SPDX-License-Identifier: Apache-2.0
// large_count DIR: asks for a gigabyte and gets the 4096 bytes there are, twenty times; at the end
// of the file it gets none. It asks for sizes that no call moves, as cp does, and that are none.
// What counts is what was moved, so this is quick under a byte limit.
#include "check.h"

#include <sys/mman.h>
#include <sys/uio.h>

int main(int argc, char** argv) {
  int const fd = make_file(folder(argc, argv) + "/large_count");
  int const copy = make_file(folder(argc, argv) + "/large_copy", 0);
  size_t const much = size_t{1} << 30;
  void* const room = mmap(nullptr, much, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(room != MAP_FAILED);
  iovec part{room, much};
  double const begin = now_s();
  for (int i = 0; i < 20; ++i) {
    CHECK(pread(fd, room, much, 0) == 4096);
    CHECK(pread(fd, room, much, 4096) == 0);
    CHECK(preadv(fd, &part, 1, 4096) == 0);
    CHECK(pread(-1, room, much, 0) == -1 && errno == EBADF);
    size_t volatile const none = SIZE_MAX - much;
    CHECK(pread(fd, room, none, 0) == -1);
    off_t from = 0, to = 0;
    CHECK(copy_file_range(fd, &from, copy, &to, PTRDIFF_MAX, 0) == 4096);
  }
  CHECK(now_s() - begin < 3);
  return 0;
}
