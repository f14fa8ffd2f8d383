// SPDX-License-Identifier: Apache-2.0
// An error of a disk that one daemon was told of, and the next one hears. Needs root and loop
// devices: the image of the file system lies on a memory file system that is too small for it.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "order/witness.h"
#include "scratch.h"
#include "unit/own_mounts.h"

using sluice::order::witnesses;

namespace {

struct small_disk {
  sluice::test::scratch holder;
  std::string const memory = holder.dir + "/memory", home = holder.dir + "/home";
  bool is_mounted = false;
  int ends[2] = {-1, -1};

  small_disk() {
    sluice::test::own_mounts();
    bool const is_there = mkdir(memory.c_str(), 0700) == 0 &&
                          mount("none", memory.c_str(), "tmpfs", 0, "size=16m") == 0;
    is_mounted = is_there && sluice::test::mount_ext4(memory + "/image", "128M", home);
    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
  }
  ~small_disk() {
    for (int const fd : ends) close(fd);
    umount2(home.c_str(), MNT_DETACH);
    umount2(memory.c_str(), MNT_DETACH);
  }
  int make(char const* name) const {
    return open((home + "/" + name).c_str(), O_RDWR | O_CREAT, 0600);
  }
};

void keep(witnesses& w, int fd) {
  struct stat st = {};
  REQUIRE(fstat(fd, &st) == 0);
  w.keep(fd, st);
}

}  // namespace

TEST_CASE("what a disk refused is heard by who asks after the one that was told", "[order]") {
  small_disk d;
  if (!d.is_mounted) {
    WARN("skip: needs root, mkfs.ext4 and loop devices");
    return;
  }
  int const fd = d.make("a"), told = d.make("b");
  REQUIRE((fd >= 0 && told >= 0));
  {
    witnesses first(d.ends[0], d.ends[1]);
    CHECK(first.heard() == 0);
    keep(first, fd);
    keep(first, told);  // of the same file system
  }
  CHECK(witnesses(d.ends[0], d.ends[1]).heard() == 0);
  std::vector<char> const bytes(1 << 20, 'x');
  for (int i = 0; i < 32; ++i) REQUIRE(write(fd, bytes.data(), bytes.size()) == 1 << 20);
  int asked = 0;
  while (syncfs(told) != 0 && ++asked < 100) {
  }
  CHECK((asked > 0 && asked < 100));  // nobody is told twice
  witnesses next(d.ends[0], d.ends[1]);
  CHECK(next.heard() != 0);  // EIO, or what the memory said: ENOSPC
  next.forget();
  CHECK(witnesses(d.ends[0], d.ends[1]).heard() == 0);
  close(fd);
  close(told);
}

TEST_CASE("without a pair of sockets nobody hears", "[order]") {
  witnesses none(-1, -1);
  keep(none, 0);
  CHECK(none.heard() == 0);
}
