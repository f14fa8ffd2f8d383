// SPDX-License-Identifier: Apache-2.0
// preadv2 with RWF_NOWAIT promises not to block: when tokens are short it says EAGAIN at once. Each
// call is quick, and with `short` as second argument at least one said EAGAIN.
#include "check.h"

#include <sys/uio.h>

int main(int argc, char** argv) {
  int const fd = make_file(folder(argc, argv) + "/nowait");
  char b[16];
  iovec part{b, sizeof b};
  CHECK(pread(fd, b, sizeof b, 0) == 16);
  double longest = 0;
  int again = 0;
  for (int i = 0; i < 300; ++i) {
    double const begin = now_s();
    ssize_t const n = preadv2(fd, &part, 1, 0, RWF_NOWAIT);
    double const took = now_s() - begin;
    if (took > longest) longest = took;
    if (n == -1) {
      if (errno == EOPNOTSUPP) return 77;
      CHECK(errno == EAGAIN);
      ++again;
    } else {
      CHECK(n == 16);
    }
  }
  CHECK(longest < 0.15);
  if (argc > 2) CHECK(again > 0);
  return 0;
}
