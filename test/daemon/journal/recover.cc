// SPDX-License-Identifier: Apache-2.0
// Recovery on real files: a log in a file, home files beside it, and what a crash could have left
// of them. Needs root and loop devices.
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "journal/boot.h"
#include "journal/file_disk.h"
#include "journal/kept_aside.h"
#include "journal/mount_time.h"
#include "journal/recover.h"
#include "journal/replay.h"
#include "journal/slots.h"
#include "journal/writer.h"
#include "recover_bench.h"

using namespace sluice::journal;
using sluice::test::bench;

namespace {

ino_t inode_of(std::string const& path) {
  struct stat st = {};
  return stat(path.c_str(), &st) == 0 ? st.st_ino : 0;
}

constexpr uid_t stranger = 64001;

/// A process of that user, until it is left; all that it started goes with it.
class as_user {
 public:
  template <class Do>
  explicit as_user(Do const& act) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      if (setresgid(stranger, stranger, stranger) == 0 &&
          setresuid(stranger, stranger, stranger) == 0)
        act(ready[1]);
      _exit(1);
    }
    close(ready[1]);
    char word = 0;
    bool const is_ready = read(ready[0], &word, 1) == 1;
    close(ready[0]);
    REQUIRE(is_ready);
  }
  ~as_user() {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  as_user(as_user const&) = delete;

 private:
  pid_t pid_ = 0;
};

}  // namespace

TEST_CASE("bytes and sizes come home, once and twice", "[order]") {
  bench b;
  if (!b.begin()) return;
  b.write("a", "old old old");
  file_id const a = b.id_of(b.path("a"));
  b.tell_data(a, 0, "new");
  record cut = b.about(kind::truncate, "a");
  cut.offset = 5;
  b.tell(cut);
  b.tell_data(a, 5, "!");
  b.crash();
  recover_options look;
  look.log = b.log;
  look.dry_run = true;
  CHECK(recover(look).records == 3);
  CHECK(b.read("a") == "old old old");
  CHECK(b.recover_it().done.records == 3);
  CHECK(b.read("a") == "new o!");
  CHECK(b.recover_it().records == 0);
  CHECK(b.read("a") == "new o!");
  // The log goes on, in the next generation.
  b.open_writer();
  b.tell_data(a, 0, "third");
  b.crash();
  CHECK(b.recover_it().generation == 3);
  CHECK(b.read("a") == "third!");
}

TEST_CASE("a replay that was asked for and cut off is replayed by whoever ends it", "[order]") {
  bench b;
  if (!b.begin()) return;
  superblock s = read_slots(*b.disk).in_force;
  REQUIRE(continue_log(*b.disk, s, s.head, random_salt(), {}, boot_id()) == 0);
  b.crash();
  b.open_writer();
  b.write("a", "old");
  b.tell_data(b.id_of(b.path("a")), 0, "new");
  b.crash();
  recover_options asked;
  asked.log = b.log;
  asked.replay = true;
  b.immutable("a", true);
  CHECK_THROWS_AS(recover(asked), sluice::error);
  b.immutable("a", false);
  CHECK_FALSE(b.recover_it().is_running);
  CHECK(b.read("a") == "new");
}

TEST_CASE("a file that somebody else changed is named and not touched", "[order]") {
  bench b;
  if (!b.begin(0)) return;
  b.write("a", "mine");
  b.write("other", "mine");
  b.tell_data(b.id_of(b.path("a")), 0, "MINE");
  b.tell_data(b.id_of(b.path("other")), 0, "MINE");
  b.crash();
  usleep(20'000);
  b.write("a", "theirs");
  usleep(20'000);  // a mount gives both times alike
  chmod(b.path("a").c_str(), 0600);
  try {
    b.recover_it();
    FAIL("recovered over it");
  } catch (sluice::error const& e) {
    CHECK(std::string(e.what()).find(b.path("a")) != std::string::npos);
  }
  CHECK(b.read("a") == "theirs");
  CHECK(b.read("other") == "mine");
  auto const r = b.recover_it(true);
  CHECK(r.foreign == std::vector<std::string>{b.path("a")});
  CHECK(b.read("a") == "theirs");
  CHECK(b.read("other") == "MINE");
}

TEST_CASE("a truncation that ext4 ends when it is mounted is nobody's change", "[order]") {
  bench b;
  if (!b.begin(0)) return;
  b.write("a", "mine");
  file_id const a = b.id_of(b.path("a"));
  auto const inode = std::to_string(inode_of(b.path("a")));
  b.tell_data(a, 0, "MINE");
  b.crash();
  // What a crash leaves: the file in the list of those to be cut.
  REQUIRE(b.at.mount_again("set_super_value last_orphan " + inode));
  CHECK(b.recover_it().foreign.empty());
  CHECK(b.read("a") == "MINE");
}

TEST_CASE("when a file system was mounted", "[order]") {
  std::uint64_t const s = 1'000'000'000;
  auto const late = mount_time_at(5000, 1000);
  CHECK_FALSE(late.has(5000 * s - 1));
  CHECK(late.has(5000 * s));
  CHECK(late.has(5001 * s));
  CHECK_FALSE(late.has(5002 * s));
  // A root file system first to be read, then to be written; another that soon not twice.
  CHECK_FALSE(mount_time_at(1010, 0).has(1003 * s));
  auto const root = mount_time_at(1010, 1000);
  CHECK_FALSE(root.has(1000 * s - 1));
  CHECK(root.has(1003 * s));
  CHECK_FALSE(root.has(1012 * s));
  struct stat st = {};
  st.st_ctim.tv_sec = st.st_mtim.tv_sec = 5001;
  CHECK(late.explains(st));
  st.st_ctim.tv_nsec = 1;
  CHECK_FALSE(late.explains(st));
}

TEST_CASE("what was synced at home is not written over", "[order]") {
  bench b;
  if (!b.begin()) return;
  b.write("a", "newest");
  file_id const a = b.id_of(b.path("a"));
  b.tell_data(a, 0, "oldest");
  record safe = b.about(kind::revoke, "a");
  safe.below = b.w->tail();
  b.tell(safe);
  b.tell_data(a, 6, "er");
  b.crash();
  b.recover_it();
  CHECK(b.read("a") == "newester");
}

TEST_CASE("a file that the crash lost is made again, one that was removed is not", "[order]") {
  bench b;
  if (!b.begin()) return;
  // As if the crash had lost its creation: the handle finds nothing any more.
  b.write("lost", "");
  b.tell(b.about(kind::create, "lost"));
  b.tell_new(b.id_of(b.path("lost")), "found");
  REQUIRE(unlink(b.path("lost").c_str()) == 0);
  // The end of its batch did not get to the disk, so nobody was told that it is durable.
  b.write("half", "");
  b.tell(b.about(kind::create, "half"));
  b.tell_data(b.id_of(b.path("half")), 0, "h");
  REQUIRE(unlink(b.path("half").c_str()) == 0);
  // Created before the log began, removed since.
  b.write("removed", "");
  b.tell_data(b.id_of(b.path("removed")), 0, "x");
  REQUIRE(unlink(b.path("removed").c_str()) == 0);
  // Its name has another file by now: home is ahead.
  b.write("ahead", "");
  b.tell(b.about(kind::create, "ahead"));
  b.tell_new(b.id_of(b.path("ahead")), "first");
  b.write("next", "second");
  REQUIRE(rename(b.path("next").c_str(), b.path("ahead").c_str()) == 0);
  b.crash();
  auto const r = b.recover_it();
  CHECK(b.read("lost") == "found");
  CHECK(b.read("half") == "no file");
  CHECK(b.read("removed") == "no file");
  CHECK(b.read("ahead") == "second");
  CHECK(r.done.made == 1);
  CHECK(r.done.ahead == 1);
  struct stat st = {};
  REQUIRE(stat(b.path("lost").c_str(), &st) == 0);
  CHECK((st.st_mode & 07777) == 0640);
  CHECK(getxattr(b.path("lost").c_str(), "trusted.sluice.recovered", nullptr, 0) < 0);
}

TEST_CASE("a name that an earlier file has still is the later one's", "[order]") {
  // What began before the file that the crash lost, and was not touched since, lost its name to it.
  for (bool const is_earlier : {true, false}) {
    bench b;
    if (!b.begin()) return;
    b.write("a", "earlier");
    auto const before = b.id_of(b.path("a"));
    // Somebody wants to be in the way.
    std::ostringstream name;
    name << ".sluice-earlier." << std::hex << inode_of(b.path("a")) << ".a";
    b.write(name.str(), "");
    usleep(20'000);
    record r = b.about(kind::create, "a");
    r.changed_ns = realtime_ns();
    usleep(20'000);
    r.file.handle.back() ^= 1;  // of nothing that is there
    b.tell(r);
    b.tell_new(r.file, "later");
    if (!is_earlier) REQUIRE(chmod(b.path("a").c_str(), 0600) == 0);  // or renamed to it
    b.crash();
    auto const done = b.recover_it().done;
    CHECK(b.read("a") == (is_earlier ? "later" : "earlier"));
    CHECK(done.ahead == (is_earlier ? 0 : 1));
    REQUIRE(done.aside.size() == (is_earlier ? 1 : 0));
    if (is_earlier) {
      CHECK(b.id_of(done.aside[0]) == before);
    }
  }
}

TEST_CASE("which of two files had a name first", "[order]") {
  struct statx x = {};
  x.stx_mask = STATX_BTIME;
  x.stx_ctime.tv_sec = 10;
  x.stx_btime.tv_sec = 5;
  constexpr std::uint64_t s = 1'000'000'000, crash = 20 * s;
  CHECK(is_earlier(x, 10 * s + 1, crash));
  CHECK_FALSE(is_earlier(x, 10 * s, crash));  // such a one is not in the log
  CHECK_FALSE(is_earlier(x, 7 * s, crash));   // renamed to it
  CHECK_FALSE(is_earlier(x, 0, crash));
  // A time from after the crash says nothing.
  CHECK(is_earlier(x, 7 * s, 9 * s));
  CHECK_FALSE(is_earlier(x, 5 * s, 9 * s));
  x.stx_mask = 0;
  CHECK_FALSE(is_earlier(x, 7 * s, 9 * s));
}

TEST_CASE("an atomic replacement comes home whole, wherever home stands", "[order]") {
  // 0: nothing of it is at home; 1: the file is, not its name; 2: all; 3: a later one is.
  for (int stands = 0; stands < 4; ++stands) {
    bench b;
    if (!b.begin()) return;
    b.write("state", "old");
    b.write("tmp", "");
    file_id const made = b.id_of(b.path("tmp"));
    b.tell(b.about(kind::create, "tmp"));
    b.tell_new(made, "new");
    if (stands == 0) unlink(b.path("tmp").c_str());
    if (stands >= 2) rename(b.path("tmp").c_str(), b.path("state").c_str());
    if (stands == 3) {
      record gone = b.about(kind::unlink, "state");
      gone.name = "tmp";
      b.write("tmp2", "newer");
      rename(b.path("tmp2").c_str(), b.path("state").c_str());
      b.tell(gone);
    }
    b.crash();
    b.recover_it();
    CHECK(b.read("state") == (stands == 3 ? "newer" : stands == 2 ? "new" : "old"));
    CHECK(b.read("tmp") == (stands < 2 ? "new" : "no file"));
  }
}

TEST_CASE("a log that cannot be used stays as it is, and is named", "[order]") {
  bench b;
  if (!b.begin()) return;
  CHECK_THROWS_AS(make_log_file(b.log, 1 << 20, 1), sluice::error);
  CHECK_THROWS_AS(file_disk(b.log, file_disk::use::write), sluice::error);  // in use
  b.crash();
  auto const bytes_of = [&] { return b.read("log"); };
  int const fd = open(b.log.c_str(), O_RDWR);
  std::uint32_t const version = 2;
  REQUIRE(pwrite(fd, &version, sizeof version, 8) == sizeof version);
  close(fd);
  std::string const before = bytes_of();
  CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("version 2") && Catch::Contains(b.log));
  CHECK(bytes_of() == before);
  b.write("text", std::string(1 << 20, 'x'));
  b.log = b.path("text");
  CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("not a journal"));
}

TEST_CASE("a file system that is not there keeps the log", "[order]") {
  bench b;
  if (!b.begin()) return;
  b.write("a", "old");
  file_id a = b.id_of(b.path("a"));
  b.tell_data(a, 0, "new");
  a.fs[0] ^= 1;
  b.tell_data(a, 0, "new");
  b.crash();
  CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("not mounted"));
  CHECK(b.read("a") == "old");
  CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("not mounted"));
}

TEST_CASE("a file that was given away after the log had it is not written", "[order]") {
  bench b;
  if (!b.begin()) return;
  for (char const* const name : {"a", "other"}) {
    b.write(name, "home");
    file_id const id = b.id_of(b.path(name));
    b.tell_owner(id, 0, 0);
    b.tell_data(id, 0, "LOGS");
  }
  b.crash();
  bool const is_group = GENERATE(false, true);
  REQUIRE(chown(b.path("a").c_str(), is_group ? 0 : stranger, stranger) == 0);
  CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("belongs to somebody else since") &&
                                        Catch::Contains(b.path("a")));
  CHECK(b.read("other") == "home");
  auto const r = b.recover_it(false, true);
  CHECK(b.read("a") == "home");
  CHECK(b.read("other") == "LOGS");
  REQUIRE(r.aside.size() == 1);
  CHECK(r.aside[0].name == b.path("a"));
  CHECK(r.aside_log == b.log + ".kept-1");
  // It has what it had, for when that is mended.
  b.log = r.aside_log;
  CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("belongs to somebody else since"));
  REQUIRE(chown(b.path("a").c_str(), 0, 0) == 0);
  CHECK(b.recover_it().aside.empty());
  CHECK(b.read("a") == "LOGS");
  CHECK(b.recover_it().records == 0);
}

TEST_CASE("a new file is its owner's, with its mode, before its bytes come home", "[order]") {
  bench b;
  if (!b.begin()) return;
  bool const is_behind = GENERATE(true, false);
  b.write("new", "");
  REQUIRE(chmod(b.path("new").c_str(), 0644) == 0);
  record made = b.about(kind::create, "new");  // with mode 0640
  made.uid = made.gid = stranger;
  made.mode |= S_ISUID | S_ISGID;  // as it was when it was synced; its bytes may be others since
  b.tell(made);
  b.tell_owner(made.file, stranger, stranger);
  // When home had it so for the last time: later than what is there, or before.
  b.tell_new(made.file, "secret", is_behind ? realtime_ns() + 1'000'000'000 : 1);
  b.crash();
  auto const r = b.recover_it(false, true);
  struct stat st = {};
  REQUIRE(stat(b.path("new").c_str(), &st) == 0);
  CHECK(st.st_uid == (is_behind ? stranger : 0));
  CHECK(st.st_gid == (is_behind ? stranger : 0));
  CHECK((st.st_mode & 07777) == (is_behind ? 0640 : 0644));
  CHECK(b.read("new") == (is_behind ? "secret" : ""));
  CHECK(r.aside.size() == (is_behind ? 0 : 1));
}

namespace {

/// What a user may do to a file of hers, in a process of hers, until that is ended.
[[noreturn]] void act_on(std::string const& path, std::string const& how, int ready) {
  if (how == "running") {
    pid_t const child = fork();
    // Not while whoever waits for it has it open to be written.
    for (; child == 0; usleep(1'000)) execl(path.c_str(), path.c_str(), "1000", nullptr);
    if (child < 0) _exit(1);
  } else {
    int const fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    signal(SIGIO, SIG_IGN);
    bool const is_leased = how == "lease" && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
    if (how == "lease" ? !is_leased : pwrite(fd, "new", 3, 0) != 3) _exit(1);
    usleep(20'000);  // a mount gives both times alike
    if (how != "lease") fchmod(fd, 0640);
  }
  if (write(ready, "1", 1) != 1) _exit(1);
  for (;;) pause();
}

/// A program that was ended keeps its file busy until the kernel is done with it.
void wait_until(bool runs, std::string const& path) {
  for (int i = 0; i < 2000; ++i) {
    int const fd = open(path.c_str(), O_WRONLY);
    bool const is_busy = fd < 0 && errno == ETXTBSY;
    if (fd >= 0) close(fd);
    if (is_busy == runs) return;
    usleep(5'000);
  }
  FAIL((runs ? "it does not run" : "it does not end"));
}

}  // namespace

TEST_CASE("what its users do to a file keeps no other from coming home", "[order]") {
  bench b;
  if (!b.begin(0)) return;
  REQUIRE(chmod(b.at.holder.dir.c_str(), 0755) == 0);
  REQUIRE(chmod(b.at.dir.c_str(), 0777) == 0);
  std::string const hers = b.path("hers"),
                    why = GENERATE(as<std::string>(), "lease", "change", "running", "name");
  b.write("hers", "home");
  b.write("other", "home");
  if (why == "running") REQUIRE(sluice::test::shell("cp /bin/sleep " + hers));
  REQUIRE(chmod(hers.c_str(), 0755) == 0);
  REQUIRE(chown(hers.c_str(), stranger, stranger) == 0);
  std::string const before = b.read("hers");
  if (why == "name") {
    record const made = b.about(kind::create, "hers");
    b.tell(made);
    b.tell_new(made.file, "LOGS");
    REQUIRE(unlink(hers.c_str()) == 0);
  } else {
    b.tell_owner(b.id_of(hers), stranger, stranger);
    b.tell_data(b.id_of(hers), 0, "LOGS");
  }
  b.tell_data(b.id_of(b.path("other")), 0, "LOGS");
  b.crash();
  usleep(20'000);
  recovered r;
  {
    as_user const she([&](int ready) { act_on(hers, why, ready); });
    if (why == "running") wait_until(true, hers);
    if (why != "name") {  // that is met when others are home already
      CHECK_THROWS_AS(b.recover_it(), sluice::error);
      if (why != "running") CHECK(b.read("other") == "home");
    }
    INFO(why);
    r = b.recover_it(false, true);
    CHECK(b.read("other") == "LOGS");
    CHECK(r.done.records >= 1);
    REQUIRE(r.aside.size() == 1);
    // Nothing of the log is over before it is in the other one.
    CHECK(b.recover_it().records == 0);
    REQUIRE(r.aside_log == b.log + ".kept-1");
    CHECK(kept_beside(b.log) == 1);
    struct stat st = {};
    REQUIRE(stat(r.aside_log.c_str(), &st) == 0);
    CHECK((st.st_uid == 0 && (st.st_mode & 07777) == 0600));
  }
  if (why == "running") wait_until(false, hers);
  b.log = r.aside_log;
  if (why == "change") {
    // What she wrote after the crash stays hers to choose, however long it takes.
    CHECK_THROWS_WITH(b.recover_it(), Catch::Contains("changed by somebody else"));
    CHECK(b.read("hers") == "newe");
    std::string const kept = b.read("log.kept-1");
    CHECK(b.recover_it(true).foreign.size() == 1);
    CHECK(b.read("hers") == "newe");
    std::ofstream(b.log, std::ios::binary) << kept;
    recover_options o;
    o.log = b.log;
    o.overwrite = true;
    CHECK(recover(o).foreign.empty());
    CHECK(b.read("hers") == "LOGS");
    return;
  }
  if (why == "name") REQUIRE(unlink(hers.c_str()) == 0);
  CHECK(b.recover_it().aside.empty());
  CHECK((b.read("hers") == (why == "running" ? "LOGS" + before.substr(4) : "LOGS")));
}

TEST_CASE("a recovery that is cut off keeps what it left aside, once", "[order]") {
  bench b;
  if (!b.begin(0)) return;
  b.write("a", "home");
  b.tell_owner(b.id_of(b.path("a")), 0, 0);
  b.tell_data(b.id_of(b.path("a")), 0, "LOGS");
  b.crash();
  std::string const log = b.read("log");
  REQUIRE(chown(b.path("a").c_str(), stranger, stranger) == 0);
  CHECK(b.recover_it(false, true).aside_log == b.log + ".kept-1");
  // As if the power had failed before the log could say that it is over.
  std::ofstream(b.log, std::ios::binary) << log;
  CHECK(b.recover_it(false, true).aside_log == b.log + ".kept-1");
  CHECK(kept_beside(b.log) == 1);
  b.write("log.kept-1", "somebody's");
  std::ofstream(b.log, std::ios::binary) << log;
  CHECK(b.recover_it(false, true).aside_log == b.log + ".kept-1-2");
  CHECK(b.read("log.kept-1") == "somebody's");
}
