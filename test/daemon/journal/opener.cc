// SPDX-License-Identifier: Apache-2.0
// The recovery of a user's log has that user's rights and no more. Needs root and loop devices.
#include "journal/opener.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>
#include <map>
#include <string>

#include "base/descriptor.h"
#include "recover_bench.h"

using namespace sluice::journal;
using sluice::test::bench;

namespace {

/// In a process of its own. What it wrote; empty: it ended well.
template <class Act>
std::string in_a_child(Act const& act) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t const pid = fork();
  if (pid == 0) {
    close(ends[0]);
    try {
      act(ends[1]);
    } catch (std::exception const& e) {
      dprintf(ends[1], "%s", e.what());
    } catch (...) {
      dprintf(ends[1], "a check failed");
    }
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char some[512];
  for (ssize_t n = 0; (n = ::read(ends[0], some, sizeof some)) > 0;)
    said.append(some, static_cast<std::size_t>(n));
  close(ends[0]);
  waitpid(pid, nullptr, 0);
  return said;
}

/// As `sluice recover` does that root runs. What stopped it; empty: nothing.
std::string recovered_as_owner(bench const& b, bool keep_home = false) {
  return in_a_child([&](int) {
    recover_options o;
    o.log = b.log;
    o.keep_home = keep_home;
    auto const files = become_owner(o.log);
    REQUIRE(files != nullptr);
    o.files = files.get();
    recover(o);
  });
}

constexpr unsigned user = 65534, his_group = 65534, others = 64999;

bool begin_of_user(bench& b) {
  return b.begin() && chmod(b.at.holder.dir.c_str(), 0755) == 0 &&
         chmod(b.at.dir.c_str(), 01777) == 0;
}

void lose(bench& b, record const& r, std::string const& path) {
  b.tell(r);
  b.tell_new(r.file, "text");
  unlink(path.c_str());  // as if the power had failed before its name was durable
}

}  // namespace

TEST_CASE("of a user's log recovery makes nothing but his own files", "[order]") {
  struct made {
    unsigned uid, gid, mode;
    bool may;
  };
  for (made const& m :
       {made{0, 0, S_IFREG | 0644, false}, made{user, others, S_IFREG | 0660, false},
        made{user, 0, S_IFREG | 0660, false}, made{user, his_group, S_IFREG | 04755, true},
        made{user, his_group, S_IFREG | 0200, true}, made{user, his_group, S_IFREG | 0640, true}}) {
    bench b;
    if (!begin_of_user(b)) return;
    b.write("lost", "x");
    record r = b.about(kind::create, "lost");
    r.uid = m.uid;
    r.gid = m.gid;
    r.mode = m.mode;
    lose(b, r, b.path("lost"));
    b.crash();
    CAPTURE(m.uid, m.gid, m.mode);
    REQUIRE(chown(b.log.c_str(), user, user) == 0);
    CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("belongs to uid 65534"));
    CHECK(recovered_as_owner(b).empty() == m.may);
    CHECK(b.read("lost") == (m.may ? "text" : "no file"));
    struct stat st = {};
    if (!m.may) continue;
    REQUIRE(stat(b.path("lost").c_str(), &st) == 0);
    CHECK((st.st_uid == user && (st.st_mode & 07777) == (m.mode & 0777)));
    CHECK(recovered_as_owner(b).empty());
  }
}

TEST_CASE("of a user's log recovery leaves alone what is another's", "[order]") {
  bench b;
  if (!begin_of_user(b)) return;
  b.write("his", "home");
  b.write("roots", "home");
  for (auto const* name : {"his", "roots"}) b.tell_data(b.id_of(b.path(name)), 0, "LOGS");
  b.crash();
  for (auto const& path : {b.log, b.path("his")}) REQUIRE(chown(path.c_str(), user, user) == 0);
  REQUIRE(chmod(b.path("roots").c_str(), 0666) == 0);  // he could write it, and it is not his
  CHECK_THAT(recovered_as_owner(b), Catch::Contains("belongs to somebody else since"));
  CHECK(b.read("his") == "home");
  CHECK(recovered_as_owner(b, true).empty());
  CHECK(b.read("his") == "LOGS");
  CHECK(b.read("roots") == "home");
}

TEST_CASE("of a user's log recovery makes nothing where he cannot go", "[order]") {
  bench b;
  if (!begin_of_user(b)) return;
  std::string const inner = b.path("shut/open");
  REQUIRE(mkdir(b.path("shut").c_str(), 0700) == 0);
  REQUIRE((mkdir(inner.c_str(), 0777) == 0 && chmod(inner.c_str(), 0777) == 0));
  b.write("shut/open/lost", "x");
  record r = b.about(kind::create, "shut/open/lost");
  r.directory = b.id_of(inner);
  r.name = "lost";
  r.uid = user;
  r.gid = his_group;
  lose(b, r, inner + "/lost");
  b.crash();
  REQUIRE(chown(b.log.c_str(), user, user) == 0);
  CHECK_THAT(recovered_as_owner(b), Catch::Contains("uid 65534 cannot open this directory"));
  CHECK(b.read("shut/open/lost") == "no file");
  REQUIRE(chmod(b.path("shut").c_str(), 0711) == 0);
  CHECK(recovered_as_owner(b).empty());
  CHECK(b.read("shut/open/lost") == "text");
}

TEST_CASE("the process with a user's rights has no more, and is not his to look into", "[order]") {
  bench b;
  if (!begin_of_user(b)) return;
  b.write("his", "x");
  b.write("roots", "x");
  REQUIRE(mkfifo(b.path("fifo").c_str(), 0666) == 0);
  for (auto const* name : {"his", "fifo"}) REQUIRE(chown(b.path(name).c_str(), user, user) == 0);
  std::string const said = in_a_child([&](int to) {
    std::map<std::string, file_id> id;
    for (auto const* name : {"his", "roots"}) id[name] = b.id_of(b.path(name));
    sluice::descriptor const fifo(open(b.path("fifo").c_str(), O_RDWR));
    REQUIRE(identify(fifo.get(), id["fifo"]) == 0);
    auto const files = become_user(user);
    sluice::descriptor const his(files->open(id["his"], O_RDWR));
    sluice::descriptor const roots(open(b.path("roots").c_str(), O_RDONLY));
    dprintf(to, "%d ", his && files->set_mark(his.get(), "m") == 0);
    dprintf(to, "%d ", files->is_marked(his.get(), "m") && !files->is_marked(his.get(), "n"));
    dprintf(to, "%d ", -files->open(id["roots"], O_RDONLY) == of_somebody_else);
    dprintf(to, "%d ", -files->open(id["roots"], O_PATH) == of_somebody_else);
    dprintf(to, "%d ", files->open(id["fifo"], O_RDONLY) == -EINVAL);
    dprintf(to, "%d ", roots && files->set_mark(roots.get(), "m") == EPERM);
    dprintf(to, "%d ", setresuid(0, 0, 0) != 0 && chown(b.path("his").c_str(), 0, 0) != 0);
    std::string const self = "/proc/" + std::to_string(getpid()) + "/fd";
    pid_t const other = fork();
    if (other == 0) {
      prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
      _exit(access(self.c_str(), R_OK) != 0 && ptrace(PTRACE_ATTACH, getppid(), 0, 0) != 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(other, &status, 0);
    dprintf(to, "%d", status == 0);
  });
  CHECK(said == "1 1 1 1 1 1 1 1");
}
