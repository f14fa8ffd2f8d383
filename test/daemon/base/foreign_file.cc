// SPDX-License-Identifier: Apache-2.0
// The door to files of users: it never waits, whatever their owner puts there or holds on them.
#include "base/foreign_file.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>

#include "lib/scratch.h"

using namespace sluice;

TEST_CASE("foreign file: a regular file of the owner, and nothing else") {
  sluice::test::scratch const at;
  std::string const file = at.dir + "/file", link = at.dir + "/link", pipe = at.dir + "/pipe";
  std::ofstream(file) << "text";
  REQUIRE(symlink(file.c_str(), link.c_str()) == 0);
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  auto const opened = open_foreign(file, O_RDWR, getuid());
  REQUIRE(opened);
  CHECK(opened.st.st_size == 4);
  CHECK(open_foreign(file, O_RDONLY, any_owner));
  CHECK(open_foreign(file, O_RDONLY, getuid() + 1).error == EPERM);
  CHECK(open_foreign(link, O_RDONLY, any_owner).error == ELOOP);
  CHECK(open_foreign(pipe, O_RDWR, any_owner).error == EPERM);
  CHECK(open_foreign(pipe, O_RDONLY, any_owner).error == EPERM);
  CHECK(open_foreign(at.dir, O_RDONLY, any_owner).error == EPERM);
  CHECK(open_foreign(at.dir + "/none", O_RDONLY, any_owner).error == ENOENT);
}

TEST_CASE("foreign file: who holds a lease on his file keeps nobody waiting") {
  sluice::test::scratch const at;
  std::string const file = at.dir + "/file";
  std::ofstream(file) << "text";
  sluice::descriptor const held(open(file.c_str(), O_RDWR | O_CLOEXEC));
  signal(SIGIO, SIG_IGN);
  REQUIRE(fcntl(held.get(), F_SETLEASE, F_WRLCK) == 0);
  CHECK(open_foreign(file, O_RDONLY, any_owner).error == EWOULDBLOCK);
  CHECK(open_foreign(file, O_RDWR, any_owner).error == EWOULDBLOCK);
  REQUIRE(fcntl(held.get(), F_SETLEASE, F_UNLCK) == 0);
  CHECK(open_foreign(file, O_RDWR, any_owner));
  signal(SIGIO, SIG_DFL);
}

namespace {

/// As filters of containers do that are older than the call.
bool refuse_openat2() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog const filter = {sizeof rules / sizeof *rules, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

}  // namespace

TEST_CASE("foreign file: it is opened below a filter that does not know openat2") {
  sluice::test::scratch const at;
  std::string const file = at.dir + "/file", none = at.dir + "/none";
  std::ofstream(file) << "text";
  pid_t const child = fork();
  REQUIRE(child >= 0);
  if (child == 0)
    _exit(refuse_openat2() && open_foreign(file, O_RDWR, any_owner) && is_here(file) &&
                  open_foreign(none, O_RDONLY, any_owner).error == ENOENT && !is_here(none)
              ? 0
              : 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
