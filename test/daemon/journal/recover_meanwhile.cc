// SPDX-License-Identifier: Apache-2.0
// What others do while a recovery runs. Needs root and loop devices.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <optional>

#include "base/descriptor.h"
#include "base/error.h"
#include "journal/kept_aside.h"
#include "lib/held_lock.h"
#include "recover_bench.h"

using namespace sluice::journal;
using sluice::descriptor;
using sluice::test::bench;
using sluice::test::held_lock;

namespace {

constexpr uid_t stranger = 64001;

/// Of an empty one that the crash lost with its name, with the next commit.
void add_lost_empty(bench& b, std::string const& name) {
  b.write(name, "");
  record made = b.about(kind::create, name), size;
  made.changed_ns = realtime_ns();
  size.what = kind::truncate;
  size.file = made.file;
  for (auto const* r : {&made, &size}) REQUIRE(b.w->try_append(*r, b.lsn) == 0);
  REQUIRE(unlink(b.path(name).c_str()) == 0);
}

void make_theirs(std::string const& path) {
  descriptor const theirs(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  REQUIRE((theirs && fchown(theirs.get(), stranger, stranger) == 0));
}

/// Between the look at a name and the link to it, a file gets its mark.
struct raced_home : mounted_home {
  std::function<void()> on_mark;
  int set_mark(int fd, std::string const& mark, hands& by) const override {
    if (!mark.empty()) on_mark();
    return mounted_home::set_mark(fd, mark, by);
  }
};

recovered recover_aside(std::string const& log, home* files,
                        std::function<void(std::uint64_t, std::uint64_t)> meanwhile,
                        std::string const& into = {}) {
  recover_options o;
  o.into = into;
  o.log = log;
  o.set_aside = true;
  o.files = files;
  o.progress = std::move(meanwhile);
  return recover(o);
}

}  // namespace

TEST_CASE("a name that another user takes at the last moment loses no file", "[order]") {
  bench b;
  if (!b.begin()) return;
  b.tell_lost("a", "LOGS");
  b.crash();
  raced_home files;
  files.on_mark = [&] { make_theirs(b.path("a")); };
  recovered const r = recover_aside(b.log, &files, nullptr);
  REQUIRE(r.aside.size() == 1);
  CHECK(r.done.ahead == 0);
  REQUIRE(unlink(b.path("a").c_str()) == 0);
  b.log = r.aside_log;
  b.recover_it();
  CHECK(b.read("a") == "LOGS");
}

TEST_CASE("a file that was made and then left aside is made again by what is kept", "[order]") {
  bench b;
  if (!b.begin()) return;
  bool const is_homeless = GENERATE(false, true);  // and its name is taken where it goes
  constexpr int more_than_are_open = 520;
  std::string const into = is_homeless ? b.path("found") : "";
  std::string const name = is_homeless ? "found/a.2" : "a";
  for (auto const* directory : {"found", "lost"})
    REQUIRE(mkdir(b.path(directory).c_str(), 0755) == 0);
  b.write("found/a", "another");
  file_id const lost = b.id_of(b.path("lost"));
  record const a = b.tell_lost("a", "LOGS", is_homeless ? &lost : nullptr);
  REQUIRE(rmdir(b.path("lost").c_str()) == 0);
  for (int i = 0; i < more_than_are_open; ++i) add_lost_empty(b, fmt::format("other{}", i));
  b.tell_data(a.file, 4, "END.");
  b.crash();
  signal(SIGIO, SIG_IGN);
  descriptor held;
  auto const take_lease = [&](std::uint64_t, std::uint64_t) {
    if (held) return;
    descriptor now(open(b.path(name).c_str(), O_RDONLY | O_CLOEXEC));
    if (now && fcntl(now.get(), F_SETLEASE, F_RDLCK) == 0) held = std::move(now);
  };
  recovered const r = recover_aside(b.log, nullptr, take_lease, into);
  REQUIRE(held);
  REQUIRE(r.aside.size() == 1);
  CHECK(b.read(name) == "no file");  // not a part of it
  held = {};
  recover_aside(r.aside_log, nullptr, nullptr, into);
  CHECK(b.read(name) == "LOGSEND.");
  CHECK(b.read("found/a") == "another");
}

TEST_CASE("a part of a file that somebody holds is completed by what is kept", "[order]") {
  bench b;
  if (!b.begin()) return;
  bool const is_changed = GENERATE(false, true);  // by its user, later
  record const a = b.tell_lost("a", "LOGS");
  b.tell_data(a.file, 4, "END.");
  b.crash();
  std::optional<held_lock> somebody;
  auto const take_lock = [&](std::uint64_t, std::uint64_t) {
    if (!somebody && b.read("a") == "LOGS") somebody.emplace(b.path("a"));
  };
  recover_options o;
  o.log = b.log;
  o.set_aside = true;
  o.progress = take_lock;
  o.patience.first_ns = o.patience.next_ns = o.patience.last_ns = 3'000'000'000;
  recovered const r = recover(o);
  REQUIRE(somebody);
  if (!*somebody) return;
  REQUIRE(r.aside.size() == 1);
  CHECK(b.read("a") == "LOGS");
  somebody->end();
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) continue;  // whoever waited
  if (is_changed) REQUIRE(chmod(b.path("a").c_str(), 0600) == 0);
  usleep(20'000);  // beyond a tick of the inode's clock
  o = {};
  o.log = b.log = r.aside_log;
  if (is_changed) {
    CHECK_THROWS_WITH(recover(o), Catch::Contains("was put there by somebody else"));
  }
  o.overwrite = is_changed;
  recovered const again = recover(o);
  CHECK(b.read("a") == "LOGSEND.");
  CHECK(again.done.aside.size() == (is_changed ? 1 : 0));
}

TEST_CASE("a made file that somebody else changes meanwhile stays, by another name", "[order]") {
  bench b;
  if (!b.begin()) return;
  b.tell_lost("a", "LOGS");
  b.crash();
  bool is_given = false;
  auto const give_away = [&](std::uint64_t, std::uint64_t) {
    if (std::exchange(is_given, true)) return;
    usleep(20'000);  // beyond a tick of the inode's clock
    REQUIRE(chown(b.path("a").c_str(), stranger, stranger) == 0);
  };
  recovered const r = recover_aside(b.log, nullptr, give_away);
  REQUIRE(r.aside.size() == 1);
  REQUIRE(r.done.aside.size() == 1);
  CHECK(access(r.done.aside[0].c_str(), F_OK) == 0);
  CHECK(getxattr(r.done.aside[0].c_str(), "trusted.sluice.recovered", nullptr, 0) < 0);
  b.log = r.aside_log;
  b.recover_it();
  CHECK(b.read("a") == "LOGS");
}

TEST_CASE("what was removed and then changed stays, whatever the journal has of it", "[order]") {
  bench b;
  if (!b.begin(0)) return;
  std::string const has =
      GENERATE("no bytes", "revoked bytes", "bytes of another owner", "a lease");
  INFO(has);
  b.write("a", "home");
  record const removed = b.about(kind::unlink, "a");
  b.tell_owner(removed.file, 0, 0);
  if (has != "no bytes") b.tell_data(removed.file, 0, "LOGS");
  if (has == "revoked bytes") {
    record r;
    r.what = kind::revoke;
    r.file = removed.file;
    r.below = b.lsn + 1;
    b.tell(r);
  }
  b.tell(removed);
  b.crash();
  usleep(20'000);
  b.write("a", "mine");
  usleep(20'000);  // a ctime beside the mtime: nothing that a mount does
  REQUIRE(chmod(b.path("a").c_str(), 0600) == 0);
  if (has == "bytes of another owner") REQUIRE(chown(b.path("a").c_str(), stranger, stranger) == 0);
  descriptor held(open(b.path("a").c_str(), O_RDWR | O_CLOEXEC));
  signal(SIGIO, SIG_IGN);
  if (has == "a lease") REQUIRE(fcntl(held.get(), F_SETLEASE, F_WRLCK) == 0);
  recovered const r = b.recover_it(false, true);
  held = {};
  CHECK(b.read("a") == "mine");
  REQUIRE(r.done.kept_names.size() == 1);
  CHECK_THAT(r.done.kept_names[0], Catch::Contains("changed since"));
}

TEST_CASE("a mount of a part keeps nobody from finding the whole", "[order]") {
  bench b;
  if (!b.begin()) return;
  for (auto const* name : {"part", "his"}) REQUIRE(mkdir(b.path(name).c_str(), 0755) == 0);
  std::string const& base = b.at.holder.dir;
  b.crash();
  REQUIRE(sluice::test::shell("mkdir " + base + "/part && mount --bind " + b.path("part") + " " +
                              base + "/part"));
  CHECK(b.at.mount_again("stat /"));  // the part comes first in the table now
  file_id const his = b.id_of(b.path("his"));
  {
    mounted_home files;
    files.keep_only({his.fs});
    descriptor const directory(files.open(his, O_RDONLY | O_DIRECTORY));
    REQUIRE(directory);
    CHECK(descriptor(files.open_by_name(his.fs, directory.get())));
  }
  CHECK(sluice::test::shell("umount " + base + "/part"));
}

TEST_CASE("a file that is made again opens to nobody what its mode does not", "[order]") {
  bench b;
  if (!b.begin()) return;
  if (!sluice::test::shell("setfacl -d -m u:64002:r " + b.at.dir)) {
    WARN("skip: needs setfacl");
    return;
  }
  b.tell_lost("a", "LOGS");  // 0640
  b.crash();
  b.recover_it();
  CHECK(b.read("a") == "LOGS");
  CHECK(getxattr(b.path("a").c_str(), "system.posix_acl_access", nullptr, 0) < 0);
  struct stat st = {};
  REQUIRE(stat(b.path("a").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0640);
}

TEST_CASE("what an attempt kept aside goes when the next one brings it home", "[order]") {
  bench b;
  if (!b.begin()) return;
  b.write("a", "home");
  b.tell_owner(b.id_of(b.path("a")), 0, 0);
  b.tell_data(b.id_of(b.path("a")), 0, "LOGS");
  b.crash();
  std::string const log = b.read("log");
  signal(SIGIO, SIG_IGN);
  descriptor held(open(b.path("a").c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(fcntl(held.get(), F_SETLEASE, F_RDLCK) == 0);
  CHECK(b.recover_it(false, true).aside_log == b.log + ".kept-1");
  held = {};
  std::ofstream(b.log, std::ios::binary) << log;  // the power failed before the log said so
  CHECK(b.recover_it(false, true).aside.empty());
  CHECK(b.read("a") == "LOGS");
  CHECK(kept_beside(b.log) == 0);
}

TEST_CASE("a recovery that is told to end does so between records, and is gone on with",
          "[order]") {
  bench b;
  if (!b.begin()) return;
  for (auto const* name : {"a", "c"}) {
    b.write(name, "home");
    b.tell_data(b.id_of(b.path(name)), 0, "LOGS");
  }
  b.crash();
  bool writes = false;
  int records = 0;
  recover_options o;
  o.log = b.log;
  o.on_write = [&] { writes = true; };
  o.is_to_end = [&] { return ++records == 2; };
  CHECK_THROWS_WITH(recover(o), Catch::Contains("told to end"));
  CHECK(writes);
  CHECK(b.read("a") == "LOGS");
  CHECK(b.read("c") == "home");
  CHECK(b.recover_it().foreign.empty());
  CHECK(b.read("c") == "LOGS");
}
