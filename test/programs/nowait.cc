// SPDX-License-Identifier: Apache-2.0
// preadv2 with RWF_NOWAIT promises not to block: when tokens are short it says EAGAIN at once. Each
// call is quick, and with `short` as second argument at least one said EAGAIN. With `beside` a
// thread asks so all the time, while 3 MiB are written.
#include "check.h"

#include <sys/uio.h>

#include <atomic>
#include <thread>
#include <vector>

static int write_beside(int fd, std::string const& name) {
  std::atomic<bool> is_over{false};
  std::thread asks([&] {
    std::vector<char> to(65536);
    iovec part{to.data(), to.size()};
    while (!is_over.load()) preadv2(fd, &part, 1, 0, RWF_NOWAIT);
  });
  int const out = make_file(name);
  std::vector<char> const data(65536);
  for (int i = 0; i < 48; ++i) CHECK(pwrite(out, data.data(), data.size(), 0) == 65536);
  is_over.store(true);
  asks.join();
  return 0;
}

int main(int argc, char** argv) {
  int const fd = make_file(folder(argc, argv) + "/nowait");
  char b[16];
  iovec part{b, sizeof b};
  CHECK(pread(fd, b, sizeof b, 0) == 16);
  if (argc > 2 && strcmp(argv[2], "beside") == 0)
    return write_beside(fd, folder(argc, argv) + "/beside");
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
