// SPDX-License-Identifier: Apache-2.0
// Ways in which acknowledged data could be lost besides a power cut: a disk that refuses bytes, a
// mark on the wrong file, a log that somebody removes, a program that cannot wait for the daemon.
#include <signal.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/error.h"
#include "journal/mark.h"
#include "lib/refusing_disk.h"
#include "order_served.h"

using namespace sluice::journal;
using sluice::test::lacks_root;
using sluice::test::served;
using sluice::test::shell;
namespace abi = sluice::abi;

namespace {

/// A served file system whose disk refuses.
struct refusing {
  served s{served::unmounted{}};
  sluice::test::refusing_disk disk{s.holder.dir, s.dir};

  refusing() { s.is_mounted = disk.is_mounted(); }
  ~refusing() {
    s.kill();
    s.is_mounted = false;
  }
};

}  // namespace

TEST_CASE("what a disk refused at home is kept in the log until it was replayed", "[order]") {
  refusing r;
  served& s = r.s;
  if (lacks_root(s)) return;
  s.knows_boot = true;  // the machine runs on: its page cache shows what its disk does not have
  s.serve_it();
  s.know();
  REQUIRE(shell("sync -f " + s.dir));
  int const fd = s.make("a"), other = s.make("b");
  std::string const text(200'000, 'a');
  REQUIRE(r.disk.close());  // first: else the kernel might have written it home before
  s.write(fd, 0, text);
  REQUIRE(s.program->sync(fd) == 0);
  REQUIRE(s.program->answered == 2);
  int const error = s.program->ask(fd, abi::order_request::sync_all);
  REQUIRE(error > 0);
  CHECK(s.program->sync(fd) == error);  // from now on, whatever the kernel says
  REQUIRE(r.disk.open_again());
  CHECK(s.program->ask(fd, abi::order_request::sync_all) == error);
  CHECK(s.failed() == error);
  auto const& refused = s.program->area().head.refused;
  for (int i = 0; i < 3000 && static_cast<int>(refused) != error; ++i) usleep(10'000);
  CHECK(static_cast<int>(refused) == error);
  s.write(other, 0, "healthy");
  CHECK(s.program->sync(other) == 0);
  s.kill();
  // Not while somebody writes it.
  CHECK_THROWS_WITH(s.recover_it(), Catch::Contains("open to be written"));
  close(fd);
  close(other);
  auto const done = s.recover_it();
  CHECK(done.home_error == error);
  CHECK_FALSE(done.is_running);
  CHECK(done.done.records > 0);
  REQUIRE(r.disk.mount_again());
  CHECK((s.read("a") == text));
  CHECK(s.read("b") == "healthy");
  auto const again = s.recover_it();
  CHECK(again.home_error == 0);
  CHECK(again.records == 0);
}

TEST_CASE("each program hears of what a disk refused of a file that is not logged", "[order]") {
  refusing r;
  served& s = r.s;
  if (lacks_root(s)) return;
  s.serve_it();
  s.know();
  REQUIRE(shell("sync -f " + s.dir));
  int const fd = s.make("a"), other = open(s.path("a").c_str(), O_RDWR);
  REQUIRE(r.disk.close());
  s.write(fd, 0, std::string(400'000, 'a'));  // more than is logged
  s.write(other, 400'000, std::string(400'000, 'b'));
  CHECK(s.program->sync(fd) > 0);
  CHECK(s.program->sync(other) > 0);
  CHECK(s.failed() == 0);
  REQUIRE(r.disk.open_again());
  close(fd);
  close(other);
}

TEST_CASE("what a disk refused while no daemon was there is replayed by the next", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.kill();
  s.knows_boot = true;
  s.begin();
  s.know();
  int const fd = s.make("a");
  s.write(fd, 0, "logged");
  REQUIRE(s.program->sync(fd) == 0);
  s.kill();
  // The kernel told a program, which notes it, and shows clean pages that the disk does not have.
  s.program->area().head.refused = EIO;
  s.program->area().head.heart_ns = 1;
  CHECK(s.program->sync(fd) == EIO);
  REQUIRE(pwrite(fd, "absent", 6, 0) == 6);
  recover_options o;
  o.log = s.log;
  o.home_error = EIO;
  CHECK_THROWS_WITH(recover(o), Catch::Contains("open to be written"));
  close(fd);
  CHECK(s.recover_it().home_error == EIO);  // the log says it by now
  CHECK(s.read("a") == "logged");
  CHECK(s.recover_it().home_error == 0);
}

TEST_CASE("a home that cannot be synced in recovery is replayed by the next one", "[order]") {
  refusing r;
  served& s = r.s;
  if (lacks_root(s)) return;
  s.knows_boot = true;
  s.serve_it();
  s.know();
  REQUIRE(shell("sync -f " + s.dir));
  int const fd = s.make("a");
  s.write(fd, 0, "text");
  REQUIRE(s.program->sync(fd) == 0);
  s.kill();
  close(fd);
  REQUIRE(r.disk.close());
  CHECK_THROWS_WITH(s.recover_it(), Catch::Contains("cannot be synced"));
  REQUIRE(r.disk.open_again());
  CHECK(s.recover_it().home_error != 0);
  REQUIRE(r.disk.mount_again());
  CHECK(s.read("a") == "text");
}

TEST_CASE("a mark that was copied to another file is none", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const alone = s.make("alone"), copied = s.make("copied");
  for (int const fd : {alone, copied}) {
    s.write(fd, 0, "logged");
    REQUIRE(s.program->sync(fd) == 0);
  }
  s.stop();
  s.write(alone, 0, "synced");
  REQUIRE(s.program->sync(alone) == 0);
  abi::order_mark mark = {};
  REQUIRE(fgetxattr(alone, abi::order_mark_name, &mark, sizeof mark) == sizeof mark);
  REQUIRE(fsetxattr(copied, abi::order_mark_name, &mark, sizeof mark, 0) == 0);
  superblock const super = read_slots(*s.disk).in_force;
  CHECK(has_mark(alone, super));
  CHECK_FALSE(has_mark(copied, super));
  s.kill();
  // The crash lost what was logged.
  REQUIRE(pwrite(copied, "absent", 6, 0) == 6);
  CHECK(s.recover_it().marked == 1);
  CHECK(s.read("copied") == "logged");
  CHECK(s.read("alone") == "synced");
}

TEST_CASE("a mark says nothing of a later file with the same number", "[order]") {
  served s;
  if (lacks_root(s)) return;
  int const fd = s.make("a");
  s.stop();
  REQUIRE(s.program->sync(fd) == 0);
  abi::order_mark mark = {};
  REQUIRE(fgetxattr(fd, abi::order_mark_name, &mark, sizeof mark) == sizeof mark);
  superblock const super = read_slots(*s.disk).in_force;
  CHECK(has_mark(fd, super));
  ++mark.birth;
  REQUIRE(fsetxattr(fd, abi::order_mark_name, &mark, sizeof mark, 0) == 0);
  CHECK_FALSE(has_mark(fd, super));
}

TEST_CASE("sync(2) without a daemon makes the log void", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const fd = s.make("a");
  s.write(fd, 0, "logged");
  REQUIRE(s.program->sync(fd) == 0);
  s.stop();
  s.write(fd, 0, "synced");
  s.program->sync_alone(s.log, fd);
  SECTION("and the machine goes down") {
    s.kill();
    CHECK(s.recover_it().is_void);
    CHECK(s.read("a") == "synced");
    CHECK(s.recover_it().records == 0);
    CHECK(getxattr(s.log.c_str(), abi::order_mark_name, nullptr, 0) < 0);
  }
  SECTION("a daemon that was only slow acknowledges nothing before it began anew") {
    s.go_on();
    auto const answered = s.program->answered.load();
    auto const logged = s.counts().logged;
    s.write(fd, 0, "native");
    REQUIRE(s.program->sync(fd) == 0);
    CHECK(s.counts().logged == logged);
    for (int i = 0; i < 3000 && !s.wants_anew(); ++i) usleep(10'000);
    CHECK(s.wants_anew());
    CHECK(s.finish());
    s.begin();
    CHECK(s.program->area().head.voided == 0);
    s.write(fd, 0, "synced");
    REQUIRE(s.program->sync(fd) == 0);
    s.write(fd, 6, ", logged");
    REQUIRE(s.program->sync(fd) == 0);
    CHECK(s.program->answered > answered);
    CHECK(s.counts().logged == 1);
    s.kill();
    // The mark on the log is of the generation before.
    REQUIRE(pwrite(fd, "lost it all..", 14, 0) == 14);
    CHECK_FALSE(s.recover_it().is_void);
    CHECK(s.read("a") == "synced, logged");
  }
}

TEST_CASE("a program that is killed while it makes the log void leaves it native", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  s.program->area().head.voided = abi::order_void + 1;
  auto const logged = s.counts().logged;
  int const fd = s.make("a");
  s.write(fd, 0, "text");
  REQUIRE(s.program->sync(fd) == 0);
  CHECK(s.counts().logged == logged);
  CHECK_FALSE(s.wants_anew());
}

TEST_CASE("what was removed before its directory was synced stays removed", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int fd = s.make("name");
  s.write(fd, 0, "first");
  REQUIRE(s.program->sync(fd) == 0);
  close(fd);
  REQUIRE(unlink(s.path("name").c_str()) == 0);
  fd = s.make("name");  // another file, of which nothing is promised
  int const dir = open(s.dir.c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(s.program->sync(dir, abi::order_request::directory) == 0);
  s.stop();  // no look from now on
  REQUIRE(unlink(s.path("name").c_str()) == 0);
  s.kill();
  s.recover_it();
  CHECK(s.read("name") == "no file");
}

TEST_CASE("a log that was removed acknowledges nothing, and all is made safe", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const fd = s.make("a");
  s.write(fd, 0, "logged");
  REQUIRE(s.program->sync(fd) == 0);
  unsigned const answered = s.program->answered;
  REQUIRE(unlink(s.log.c_str()) == 0);
  SECTION("before the next fsync") {}
  SECTION("and nobody asks") {
    for (int i = 0; i < 3000 && s.failed() == 0; ++i) usleep(10'000);
    for (int i = 0; i < 3000 && dirty_pages(fd, {}) > 0; ++i) usleep(10'000);
    CHECK(dirty_pages(fd, {}) <= 0);
  }
  s.write(fd, 6, ", native");
  CHECK(s.program->sync(fd) == 0);
  CHECK(s.program->answered == answered);
  CHECK(s.failed() == ENOENT);
  CHECK((s.program->state(fd) & abi::order_marked) != 0);
}

TEST_CASE("a log that fails is no error of the files", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const known = s.make("a"), fresh = s.make("b");
  s.write(known, 0, "logged");
  REQUIRE(s.program->sync(known) == 0);
  unsigned const answered = s.program->answered;
  s.disk->is_broken = true;
  for (int round = 0; round < 3; ++round)
    for (int const fd : {known, fresh}) {
      s.write(fd, 0, "native");
      CHECK(s.program->sync(fd) == 0);
      CHECK(dirty_pages(fd, {}) <= 0);
    }
  CHECK(s.program->answered == answered);
  CHECK(s.failed() == EIO);
  s.kill();
  CHECK(s.recover_it().marked >= 1);
  CHECK(s.read("a") == "native");
  CHECK(s.read("b") == "native");
}

TEST_CASE("a checkpoint syncs every device that has files in the log", "[order]") {
  served t, s;  // in this order: the daemon sees what was mounted before
  if (lacks_root(s)) return;
  s.know();
  // The same daemon, and a file of another file system.
  std::swap(s.dir, t.dir);
  s.know();
  int const there = s.make("a");
  std::swap(s.dir, t.dir);
  int const here = s.make("a");
  for (int const fd : {here, there}) {
    s.write(fd, 0, std::string(5000, 'x'));
    REQUIRE(s.program->sync(fd) == 0);
  }
  REQUIRE(s.counts().logged == 2);
  if (dirty_pages(here, {}) < 0) {
    WARN("skip: the kernel has no cachestat");
    return;
  }
  CHECK(s.program->ask(here, abi::order_request::sync_all) == 0);
  CHECK(dirty_pages(here, {}) == 0);
  CHECK(dirty_pages(there, {}) == 0);
}

TEST_CASE("what is drained to be bypassed is closed by then, and not opened again", "[order]") {
  served s;
  if (lacks_root(s)) return;
  bool const is_live = GENERATE(true, false);
  if (is_live) s.know();
  auto const logged_before = s.counts().logged;
  int const fd = s.make("leased");
  s.write(fd, 0, "text");
  REQUIRE(s.program->sync(fd) == 0);
  REQUIRE((s.counts().logged > logged_before) == is_live);
  CHECK(fcntl(fd, F_SETLEASE, F_WRLCK) != 0);  // the daemon has it open: this shows something
  s.program->raise(fd, abi::order_bypass);
  REQUIRE(s.program->ask(fd, abi::order_request::drain) == 0);
  CHECK(fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
  s.write(fd, 0, "more");
  CHECK(s.program->ask(fd, abi::order_request::fsync) == abi::go_native);
  CHECK(fcntl(fd, F_GETLEASE) == F_WRLCK);
  close(fd);
}

TEST_CASE("only who may write a file has it made durable by the daemon", "[order]") {
  sluice::test::scratch at;
  std::string const path = at.dir + "/file", pipe = at.dir + "/pipe";
  std::ofstream(path) << "text";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  sluice::test::guest const program(at.dir + "/order", true);
  area asked(at.dir + "/order");
  auto const may = [&](std::string const& name, int flags, bool is_directory) {
    int const fd = open(name.c_str(), flags);
    REQUIRE(fd >= 0);
    struct stat st = {};
    REQUIRE(fstat(fd, &st) == 0);
    request r;
    r.from = &asked;
    r.pid = static_cast<std::uint32_t>(getpid());
    r.fd = fd;
    r.device = device_word(st);
    r.inode = st.st_ino;
    struct stat seen = {};
    auto const got = fetch(r, is_directory, seen);
    if (got) {
      CHECK((fcntl(got.get(), F_GETFL) & O_PATH) != 0);  // not the program's, and not opened yet
      auto const held = open_fetched(got.get(), is_directory);
      CHECK((fcntl(held.get(), F_GETFL) & O_NONBLOCK) != 0);  // nobody's lease holds us up
    }
    ++r.inode;
    CHECK_FALSE(fetch(r, is_directory, seen));  // the fd means another file by now
    close(fd);
    return static_cast<bool>(got);
  };
  CHECK(may(path, O_RDWR, false));
  CHECK(may(path, O_WRONLY | O_APPEND, false));
  CHECK_FALSE(may(path, O_RDONLY, false));
  CHECK_FALSE(may(path, O_PATH, false));
  CHECK_FALSE(may(pipe, O_RDWR, false));
  CHECK(may(at.dir, O_RDONLY | O_DIRECTORY, true));
  CHECK_FALSE(may(at.dir, O_RDONLY | O_DIRECTORY, false));
}

TEST_CASE("a kernel that does not count dirty pages is told from one that finds none", "[order]") {
  CHECK(dirty_pages(-1, {}) == -1);
  CHECK(dirty_pages(-1, {{1, 3}}) == -1);
}

TEST_CASE("slots that nobody comes back to are free again", "[order]") {
  sluice::test::scratch at;
  std::string const path = at.dir + "/order";
  sluice::test::guest program(path, true);
  area mine(path);
  pid_t const gone = fork();
  if (gone == 0) _exit(0);
  REQUIRE(waitpid(gone, nullptr, 0) == gone);
  constexpr std::uint64_t second_ns = 1'000'000'000;
  auto const word = [](unsigned user, abi::order_slot_state s) {
    return user << 3 | static_cast<std::uint32_t>(s);
  };
  using state = abi::order_slot_state;
  struct row {
    state is;
    pid_t owner;
    std::uint64_t lives_ns;  // 0: for ever
  };
  row const rows[] = {{state::claimed, getpid(), 5 * second_ns},
                      {state::claimed, gone, 5 * second_ns},
                      {state::posted, gone, 0},
                      {state::taken, gone, 0},
                      {state::done, gone, 5 * second_ns},
                      {state::done, getpid(), 60 * second_ns},
                      {state::abandoned, getpid(), 5 * second_ns}};
  auto& slots = program.area().slot;
  for (unsigned i = 0; i < std::size(rows); ++i) {
    slots[i].word = word(7, rows[i].is);
    slots[i].pid = static_cast<std::uint32_t>(rows[i].owner);
  }
  for (std::uint64_t now_ns = second_ns; now_ns < 100 * second_ns; now_ns += second_ns / 2) {
    mine.reclaim(now_ns);
    for (unsigned i = 0; i < std::size(rows); ++i) {
      INFO("row " << i << " at " << now_ns / second_ns << " s");
      bool const is_over = rows[i].lives_ns != 0 && now_ns - second_ns >= rows[i].lives_ns;
      CHECK(slots[i].word == word(7, is_over ? state::free : rows[i].is));
    }
  }
  // A slot in use is young each time.
  for (unsigned user = 8; user < 30; ++user) {
    slots[0].word = word(user, state::claimed);
    mine.reclaim((100 + user) * second_ns);
    CHECK(slots[0].word == word(user, state::claimed));
  }
}

TEST_CASE("an area is not let go of while a call about it waits", "[order]") {
  mailbox mail;
  CHECK(mail.is_empty());
  mail.post([] {});
  CHECK_FALSE(mail.is_empty());
  CHECK(mail.run());
  CHECK(mail.is_empty());
}
