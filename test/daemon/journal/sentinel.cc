// SPDX-License-Identifier: Apache-2.0
// An error of a disk that one daemon was told of, and the next one hears. Needs root and loop
// devices.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "journal/sentinel.h"
#include "lib/refusing_disk.h"
#include "lib/scratch.h"
#include "lib/silent_fuse.h"

using sluice::journal::sentinels;

namespace {

struct small_disk {
  sluice::test::scratch holder;
  std::string const home = holder.dir + "/home";
  sluice::test::refusing_disk disk{holder.dir, home};
  int ends[2] = {-1, -1};

  small_disk() { REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0); }
  ~small_disk() {
    for (int const fd : ends) close(fd);
  }
  int make(char const* name) const {
    return open((home + "/" + name).c_str(), O_RDWR | O_CREAT, 0600);
  }
};

void skip() { WARN("skip: needs root, mkfs.ext4, loop devices and FUSE"); }

void keep(sentinels& w, int fd) {
  struct stat st = {};
  REQUIRE(fstat(fd, &st) == 0);
  w.keep(fd, st);
}

}  // namespace

TEST_CASE("what a disk refused is heard by who asks after the one that was told", "[order]") {
  small_disk d;
  if (!d.disk.is_mounted()) return skip();
  int const fd = d.make("a"), told = d.make("b");
  REQUIRE((fd >= 0 && told >= 0));
  {
    sentinels first(d.ends[0], d.ends[1]);
    CHECK(first.heard() == 0);
    keep(first, fd);
    keep(first, told);  // of the same file system
  }
  CHECK(sentinels(d.ends[0], d.ends[1]).heard() == 0);
  REQUIRE(d.disk.close());
  std::vector<char> const bytes(1 << 20, 'x');
  REQUIRE(write(fd, bytes.data(), bytes.size()) == 1 << 20);
  int asked = 0;
  while (syncfs(told) != 0 && ++asked < 100) {
  }
  CHECK((asked > 0 && asked < 100));  // nobody is told twice
  sentinels next(d.ends[0], d.ends[1]);
  CHECK(next.heard() != 0);  // EIO, or what the memory said: ENOSPC
  next.forget();
  CHECK(sentinels(d.ends[0], d.ends[1]).heard() == 0);
  close(fd);
  close(told);
}

TEST_CASE("what is mounted over a file's directory is not asked to keep its disk's errors",
          "[order]") {
  small_disk d;
  if (!d.disk.is_mounted()) return skip();
  REQUIRE(mkdir((d.home + "/shared").c_str(), 0777) == 0);
  int const inside = d.make("shared/a"), fd = d.make("b");
  sentinels w(d.ends[0], d.ends[1]);
  {
    sluice::test::silent_fuse over(d.home + "/shared");
    if (!over.is_mounted()) return skip();
    CHECK_FALSE(over.is_asked_by([&] { keep(w, inside); }));
    keep(w, fd);
  }
  CHECK(w.heard() == 0);
  close(inside);
  close(fd);
}

TEST_CASE("without a pair of sockets nobody hears", "[order]") {
  sentinels none(-1, -1);
  keep(none, 0);
  CHECK(none.heard() == 0);
}
