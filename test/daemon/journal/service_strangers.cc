// SPDX-License-Identifier: Apache-2.0
// Two users of one journal: what the one scribbles into his area acts on no file but those that he
// has shown that he may write. Needs root, loop devices, and a second uid.
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>

#include "order_served.h"

using namespace sluice::journal;
using sluice::test::guest;
using sluice::test::lacks_root;
using sluice::test::served;
namespace abi = sluice::abi;

namespace {

constexpr uid_t stranger = 64001;

/// A served file system of ours, and the area of somebody else beside ours.
struct two_users {
  served s;
  std::string his_area = s.holder.dir + "/his-order";
  std::optional<guest> his;

  bool begin() {
    if (lacks_root(s)) return false;
    REQUIRE(chmod(s.holder.dir.c_str(), 0755) == 0);
    his.emplace(his_area, true);
    REQUIRE(chown(his_area.c_str(), stranger, stranger) == 0);
    serve_him();
    s.know();
    return true;
  }
  void serve_him() {
    s.ask([&](service& d) { return d.add(std::make_unique<area>(his_area)), 0; });
  }
  void let_him_go() {
    s.ask([&](service& d) { return d.remove(his_area), 0; });
  }
  /// What the daemon answers to a process of his about a file that he has open.
  int he_asks(std::string const& name, int flags, abi::order_request kind) {
    pid_t const process = fork();
    if (process == 0) {
      if (setresgid(stranger, stranger, stranger) != 0 ||
          setresuid(stranger, stranger, stranger) != 0)
        _exit(101);
      int const fd = open(s.path(name).c_str(), flags);
      int const said = fd < 0 ? 102 : his->ask(fd, kind);
      _exit(said == abi::go_native ? 103 : said);
    }
    int status = 0;
    REQUIRE(waitpid(process, &status, 0) == process);
    return WEXITSTATUS(status);
  }
  /// All that he can say of that file.
  void scribble(int fd) const {
    his->created(fd);
    his->wrote(fd, 0, 1 << 20);
    his->cut(fd, 1);
    his->raise(fd, abi::order_native | abi::order_bypass | abi::order_whole | abi::order_moved);
  }
  void scribble_on_all() const {
    abi::order_area& a = his->area();
    a.head.blind = 1;
    a.head.unwatched = 1;
    for (auto& set : a.set) {
      set.overflow = 1;
      for (auto& name : set.given_up) name = ~std::uint64_t{0};
    }
  }
};

}  // namespace

TEST_CASE("what a user notes and flags is nothing to the files of another", "[order]") {
  two_users t;
  if (!t.begin()) return;
  served& s = t.s;
  int const fd = s.make("a");
  s.write(fd, 0, std::string(20000, 'a'));
  REQUIRE(s.program->sync(fd) == 0);
  auto const before = s.counts();
  std::uint64_t files = 1;
  SECTION("of one file") { t.scribble(fd); }
  SECTION("of all") { t.scribble_on_all(); }
  SECTION("that he is about to say the log is void") {
    t.his->area().head.voided = abi::order_void + 1;
  }
  SECTION("of a job that is over") {
    t.scribble(fd);
    t.let_him_go();
  }
  SECTION("of a job that comes") {
    t.let_him_go();
    t.scribble_on_all();
    t.serve_him();
  }
  SECTION("of the directory, which he has open to be read") {
    int const dir = open(s.dir.c_str(), O_RDONLY | O_DIRECTORY);
    CHECK(t.he_asks(".", O_RDONLY | O_DIRECTORY, abi::order_request::directory) == 0);
    t.his->raise(dir, abi::order_native | abi::order_bypass);
    close(dir);
  }
  SECTION("of one that he may read") {
    CHECK(t.he_asks("a", O_RDONLY, abi::order_request::fsync) != 0);  // mode 0640
    REQUIRE(fchmod(fd, 0644) == 0);
    REQUIRE(s.program->sync(fd) == 0);
    s.write(fd, 20000, "0");
    REQUIRE(s.program->sync(fd) == 0);
    CHECK(t.he_asks("a", O_RDONLY, abi::order_request::fsync) == 103);
    t.scribble(fd);
    s.write(fd, 20001, "1");
    REQUIRE(s.program->sync(fd) == 0);
    CHECK(s.counts().logged == before.logged + 2);
    files = 0;
  }
  if (files != 0) {
    s.write(fd, 0, "new");
    REQUIRE(s.program->sync(fd) == 0);
    int const other = s.make("b");
    s.write(other, 0, "text");
    REQUIRE(s.program->sync(other) == 0);
    close(other);
    CHECK(s.counts().logged == before.logged + 2);
  }
  CHECK((t.his->state(fd) & abi::order_watched) == 0);  // nor is he told of them
  std::string const want = s.read("a");
  s.kill();
  s.recover_it();
  CHECK((s.read("a") == want));
  close(fd);
}

TEST_CASE("who has shown that he may write a file counts for it", "[order]") {
  two_users t;
  if (!t.begin()) return;
  served& s = t.s;
  int const fd = s.make("a"), other = s.make("b");
  REQUIRE(fchmod(fd, 0666) == 0);
  for (int const each : {fd, other}) {
    s.write(each, 0, "text");
    REQUIRE(s.program->sync(each) == 0);
  }
  // From now on he notes as well, and what he has not noted so far is looked for at home.
  CHECK(t.he_asks("a", O_RDWR, abi::order_request::fsync) == 0);
  CHECK((t.his->state(fd) & abi::order_watched) != 0);
  s.write(fd, 4, "more");
  t.his->wrote(fd, 4, 8);
  auto const before = s.counts();
  REQUIRE(s.program->sync(fd) == 0);
  CHECK(s.counts().logged == before.logged + 1);
  SECTION("when he goes where nobody sees him") { t.his->area().head.blind = 1; }
  SECTION("when he writes it without a note") { t.his->raise(fd, abi::order_bypass); }
  for (int const each : {fd, other}) {
    s.write(each, 0, "last");
    REQUIRE(s.program->sync(each) == 0);
  }
  CHECK(s.counts().synced == before.synced + 1);
  CHECK(s.counts().logged == before.logged + 2);  // the other one, that he has not shown
  close(fd);
  close(other);
}

TEST_CASE("a log that a stranger's program calls void is so for his files alone", "[order]") {
  two_users t;
  if (!t.begin()) return;
  served& s = t.s;
  s.rules.checkpoint_every_ns = ~std::uint64_t{0} >> 1;
  int const his = s.make("his"), ours = s.make("ours");
  REQUIRE(fchmod(his, 0666) == 0);
  for (int const each : {his, ours}) {
    s.write(each, 0, "text");
    REQUIRE(s.program->sync(each) == 0);
  }
  REQUIRE(t.he_asks("his", O_RDWR, abi::order_request::fsync) == 0);
  s.write(his, 4, "more");
  REQUIRE(s.program->sync(his) == 0);
  s.write(ours, 0, "more");
  REQUIRE(s.program->sync(ours) == 0);
  auto const before = s.counts();
  REQUIRE((s.program->state(his) & s.program->state(ours) & abi::order_logged) != 0);
  // As a stage does that has synced everything, and cannot mark a log that is not its own.
  t.his->area().head.voided = abi::order_void | abi::order_void_failed;
  for (int i = 0; i < 1000 && t.his->area().head.voided != 0; ++i) {
    REQUIRE_FALSE(s.wants_anew());
    usleep(10'000);
  }
  CHECK(t.his->area().head.voided == 0);  // served again
  CHECK((s.program->state(his) & abi::order_logged) == 0);
  CHECK((s.program->state(ours) & abi::order_logged) != 0);
  CHECK(s.counts().checkpoints == before.checkpoints);
  // Ours may mark it, and did perhaps.
  s.program->area().head.voided = abi::order_void | abi::order_void_done;
  for (int i = 0; i < 200 && !s.wants_anew(); ++i) usleep(10'000);
  CHECK(s.wants_anew());
  close(his);
  close(ours);
}

TEST_CASE("who may give and take names in a directory", "[order]") {
  if (geteuid() != 0) return;
  sluice::test::scratch const at;
  guest const program(at.dir + "/order", true);
  REQUIRE(chown((at.dir + "/order").c_str(), stranger, stranger) == 0);
  area const asks_from(at.dir + "/order");
  pid_t const process = fork();
  if (process == 0) {
    gid_t const groups[] = {64010};
    if (setgroups(1, groups) != 0 || setresgid(stranger, stranger, stranger) != 0) _exit(1);
    for (;;) pause();
  }
  for (int i = 0; i < 1000; ++i) {
    std::ifstream in("/proc/" + std::to_string(process) + "/status");
    std::string const text{std::istreambuf_iterator<char>(in), {}};
    if (text.find("Gid:\t64001") != text.npos) break;
    usleep(1000);
  }
  request r;
  r.from = const_cast<area*>(&asks_from);
  r.pid = static_cast<std::uint32_t>(process);
  auto const may = [&](uid_t uid, gid_t gid, unsigned mode) {
    struct stat st = {};
    st.st_uid = uid;
    st.st_gid = gid;
    st.st_mode = S_IFDIR | mode;
    return may_change_names(r, -1, st);
  };
  CHECK(may(stranger, 0, 0755));
  CHECK_FALSE(may(0, 0, 0775));
  CHECK_FALSE(may(0, stranger, 0755));
  CHECK(may(0, stranger, 0775));
  CHECK(may(0, 64010, 0770));
  CHECK(may(0, 0, 01777));
  ::kill(process, SIGKILL);
  waitpid(process, nullptr, 0);

  held_directory d;
  d.owner = 1000;
  d.show(1001);
  CHECK(d.is_open_to(1001, 1002));
  CHECK(d.is_open_to(1002, 1002));
  CHECK_FALSE(d.is_open_to(1003, 1002));
  d.is_sticky = true;  // there he takes away names of his own alone
  CHECK_FALSE(d.is_open_to(1001, 1002));
  d.show(1000);
  CHECK(d.is_open_to(1000, 1002));
}
