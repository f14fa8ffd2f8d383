// SPDX-License-Identifier: Apache-2.0
// Whose descriptors the log daemon takes: those of processes of the area's user, and of no others,
// whatever stands in the area. Needs root, for another user.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "journal/held_file.h"
#include "lib/own_mounts.h"
#include "lib/scratch.h"
#include "lib/silent_fuse.h"
#include "order_guest.h"

using namespace sluice::journal;
namespace abi = sluice::abi;

namespace {

constexpr uid_t stranger = 64001;

/// A process of that user that has `path` open to be written, until it is killed.
class writer_of {
 public:
  writer_of(std::string const& path, uid_t user) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    pid = fork();
    if (pid == 0) {
      if (user != 0 && (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0))
        _exit(1);
      fd = open(path.c_str(), O_RDWR);
      if (fd != write(ready[1], &fd, sizeof fd) && fd >= 0)
        for (;;) pause();
      _exit(1);
    }
    REQUIRE(read(ready[0], &fd, sizeof fd) == sizeof fd);
    close(ready[0]);
    close(ready[1]);
  }
  ~writer_of() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  writer_of(writer_of const&) = delete;
  writer_of& operator=(writer_of const&) = delete;

  pid_t pid = 0;
  int fd = -1;
};

request about(area& from, writer_of const& w, struct stat const& st) {
  request r;
  r.from = &from;
  r.pid = static_cast<std::uint32_t>(w.pid);
  r.fd = w.fd;
  r.device = device_word(st);
  r.inode = st.st_ino;
  return r;
}

}  // namespace

TEST_CASE("a descriptor is taken of the area's user alone", "[order]") {
  if (geteuid() != 0) return;
  sluice::test::scratch const at;
  REQUIRE(chmod(at.dir.c_str(), 0755) == 0);
  std::string const file = at.dir + "/file", path = at.dir + "/order";
  int const made = open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  struct stat st = {};
  REQUIRE((made >= 0 && fchown(made, stranger, stranger) == 0 && fstat(made, &st) == 0));
  sluice::test::guest const roots(path, true);
  writer_of const hers(file, stranger), ours(file, 0);
  struct stat seen = {};
  {
    area a(path);
    CHECK_FALSE(take_descriptor(about(a, hers, st)));
    CHECK_FALSE(fetch(about(a, hers, st), false, seen));
    CHECK(take_descriptor(about(a, ours, st)));
    CHECK(fetch(about(a, ours, st), false, seen));
  }
  REQUIRE(chown(path.c_str(), stranger, stranger) == 0);
  area a(path);
  CHECK(fetch(about(a, hers, st), false, seen));
  CHECK_FALSE(fetch(about(a, ours, st), false, seen));  // root's process is not hers to name
  close(made);
}

TEST_CASE("of a descriptor on a user's file system no server is asked", "[order]") {
  if (geteuid() != 0) return;
  sluice::test::own_mounts();
  sluice::test::scratch const at;
  sluice::test::guest const roots(at.dir + "/order", true);
  std::string const dir = at.dir + "/his";
  REQUIRE(mkdir(dir.c_str(), 0755) == 0);
  sluice::test::silent_fuse his(dir);
  if (!his.is_mounted()) {
    WARN("skip: needs FUSE");
    return;
  }
  sluice::descriptor const open_there(open(dir.c_str(), O_PATH | O_CLOEXEC));
  area a(at.dir + "/order");
  request r;
  r.from = &a;
  r.pid = static_cast<std::uint32_t>(getpid());
  r.fd = open_there.get();
  CHECK_FALSE(his.is_asked_by([&] {
    struct stat st = {};
    fetch(r, true, st);
  }));
}
