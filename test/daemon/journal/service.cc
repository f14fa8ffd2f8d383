// SPDX-License-Identifier: Apache-2.0
// The service with programs that ask it, on a real file system: what it logs, what it syncs, and
// what recovery makes of the log when home has lost everything since. Needs root and loop devices.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "order_served.h"

using namespace sluice::journal;
using sluice::test::lacks_root;
using sluice::test::served;
namespace abi = sluice::abi;

TEST_CASE("new files, appends and overwrites are logged and come home", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  auto const logged_before = s.counts().logged;
  int const fd = s.make("a");
  s.write(fd, 0, std::string(5000, 'a'));
  REQUIRE(s.program->sync(fd) == 0);
  s.write(fd, 5000, std::string(5000, 'b'));
  REQUIRE(s.program->sync(fd) == 0);
  s.write(fd, 10, "CCC");
  REQUIRE(s.program->sync(fd, abi::order_request::fdatasync) == 0);
  REQUIRE(s.program->sync(fd) == 0);
  CHECK(s.program->answered == 5);
  CHECK(s.counts().logged == logged_before + 3);
  std::string const want = s.read("a");
  s.kill();
  close(fd);
  // Home has lost it all.
  REQUIRE(unlink(s.path("a").c_str()) == 0);
  CHECK(s.recover_it().done.made == 1);
  CHECK((s.read("a") == want));
  CHECK(s.recover_it().records == 0);
}

TEST_CASE("recovery leaves no setuid and no setgid on what it writes", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const fd = s.make("a");
  s.write(fd, 0, std::string(20000, 'a'));
  REQUIRE(s.program->sync(fd) == 0);
  std::string const want = s.read("a");
  s.kill();
  // As it was before the write, when a power cut takes what the kernel did to the mode.
  REQUIRE(fchmod(fd, 06755) == 0);
  REQUIRE(pwrite(fd, "other", 5, 0) == 5);
  REQUIRE(fchmod(fd, 06755) == 0);
  s.recover_it();
  struct stat st = {};
  REQUIRE(fstat(fd, &st) == 0);
  CHECK((st.st_mode & 07777) == 0755);
  CHECK((s.read("a") == want));
  close(fd);
}

TEST_CASE("a bit of privilege that the kernel took does not come back over what the log has",
          "[order]") {
  served s;
  if (lacks_root(s)) return;
  auto const kind = GENERATE(abi::order_request::fsync, abi::order_request::fdatasync);
  auto const bits = GENERATE(04777u, 02777u, 06777u);
  constexpr uid_t stranger = 64001;
  REQUIRE(chmod(s.holder.dir.c_str(), 0755) == 0);
  int const fd = s.make("tool");
  s.write(fd, 0, "good");
  REQUIRE(fchmod(fd, bits) == 0);
  REQUIRE(s.program->sync(fd) == 0);  // at home, with its mode
  pid_t const other = fork();
  if (other == 0) {
    if (setresgid(stranger, stranger, stranger) != 0 ||
        setresuid(stranger, stranger, stranger) != 0)
      _exit(1);
    int const his = open(s.path("tool").c_str(), O_WRONLY);
    _exit(his >= 0 && pwrite(his, "evilevil", 8, 0) == 8 ? 0 : 1);
  }
  int status = 1;
  REQUIRE((waitpid(other, &status, 0) == other && status == 0));
  s.program->wrote(fd, 0, 8);
  REQUIRE(s.program->sync(fd, kind) == 0);
  struct stat st = {};
  REQUIRE((fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0777));
  s.kill();
  // As it is on the disk when a power cut takes what the kernel did to mode and bytes.
  REQUIRE((pwrite(fd, "good", 4, 0) == 4 && ftruncate(fd, 4) == 0 && fchmod(fd, bits) == 0));
  s.recover_it();
  REQUIRE(fstat(fd, &st) == 0);
  bool const has_bits = (st.st_mode & 06000) != 0;
  CHECK((s.read("tool") == "good" || !has_bits));
  // Of an fsync the mode is durable at home, and the log has nothing.
  if (s.program->alone == 0)
    CHECK(s.read("tool") == (kind == abi::order_request::fsync ? "good" : "evilevil"));
  close(fd);
}

TEST_CASE("what the log has of a file is its owner's", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  auto const kind = GENERATE(abi::order_request::fsync, abi::order_request::fdatasync);
  constexpr uid_t stranger = 64001;
  int const fd = s.make("a");
  s.write(fd, 0, "logged");
  REQUIRE(s.program->sync(fd) == 0);
  auto const before = s.counts();
  SECTION("a new one is told to home") {
    REQUIRE(fchown(fd, stranger, stranger) == 0);
    s.write(fd, 0, "hers..");
    REQUIRE(s.program->sync(fd, kind) == 0);
    CHECK(s.counts().synced == before.synced + 1);
    CHECK(s.counts().logged == before.logged);
    s.kill();
    s.recover_it();
    CHECK(s.read("a") == "hers..");
  }
  SECTION("and is not written when it is another's by then") {
    s.write(fd, 0, "LOGGED");
    REQUIRE(s.program->sync(fd, kind) == 0);
    REQUIRE(s.counts().logged == before.logged + 1);
    s.kill();
    s.write(fd, 0, "hers..");
    REQUIRE(fchown(fd, stranger, stranger) == 0);
    CHECK_THROWS_WITH(s.recover_it(), Catch::Contains("belongs to somebody else since"));
    CHECK(s.read("a") == "hers..");
  }
  close(fd);
}

TEST_CASE("what a file was cut to comes home before what was written after it", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const fd = s.make("a");
  s.write(fd, 0, std::string(20000, 'a'));
  REQUIRE(s.program->sync(fd) == 0);
  REQUIRE(ftruncate(fd, 100) == 0);
  s.program->cut(fd, 100);
  s.write(fd, 16384, "end");
  REQUIRE(s.program->sync(fd) == 0);
  std::string const want = s.read("a");
  s.kill();
  std::ofstream(s.path("a")) << std::string(30000, 'z');
  s.recover_it();
  CHECK((s.read("a") == want));
}

TEST_CASE("a removed file stays removed, and its name may be given again", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int fd = s.make("a");
  s.write(fd, 0, "first");
  REQUIRE(s.program->sync(fd) == 0);
  close(fd);
  REQUIRE(unlink(s.path("a").c_str()) == 0);
  fd = s.make("a");
  s.write(fd, 0, "second");
  REQUIRE(s.program->sync(fd) == 0);
  int const other = s.make("gone");
  s.write(other, 0, "x");
  REQUIRE(s.program->sync(other) == 0);
  REQUIRE(unlink(s.path("gone").c_str()) == 0);
  int const dir = open(s.dir.c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(s.program->sync(dir, abi::order_request::directory) == 0);
  s.kill();
  close(other);
  close(fd);
  REQUIRE(unlink(s.path("a").c_str()) == 0);
  s.recover_it();
  CHECK(s.read("a") == "second");
  CHECK(s.read("gone") == "no file");
}

TEST_CASE("where times do not tell whose name it was, home is synced", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  for (bool const is_changed : {false, true}) {
    struct stat st = {};
    int const fd = s.make(is_changed ? "b" : "a");
    REQUIRE(fstat(fd, &st) == 0);
    st.st_ctim.tv_nsec -= is_changed ? 0 : 1;  // of who had the name
    s.program->gave_up(is_changed ? "b" : "a", st);
    auto const synced = s.counts().synced, logged = s.counts().logged;
    s.write(fd, 0, "x");
    REQUIRE(s.program->sync(fd) == 0);
    CHECK(s.counts().logged == logged + !is_changed);
    CHECK(s.counts().synced == synced + is_changed);
    close(fd);
  }
}

TEST_CASE("a file over whose name another one is mounted is not taken for that one", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const known = s.make("known"), fd = s.make("a"), other = s.make("b");
  s.write(known, 0, "x");
  REQUIRE(s.program->sync(known) == 0);  // its directory is the one looked at last
  s.write(fd, 0, "mine");
  s.write(other, 0, "other");
  REQUIRE(sluice::test::shell("mount --bind " + s.path("b") + " " + s.path("a")));
  auto const synced = s.counts().synced;
  CHECK(s.program->sync(fd) == 0);
  CHECK(s.counts().synced == synced + 1);  // what its name is nobody knows
  CHECK(dirty_pages(fd, {}) <= 0);
  REQUIRE(sluice::test::shell("umount -l " + s.path("a")));
  for (int const one : {known, fd, other}) close(one);
}

TEST_CASE("who had the name of a new file is closed without a checkpoint", "[order]") {
  served s({.log = {}, .checkpoint_every_ns = 3'600'000'000'000});
  if (lacks_root(s)) return;
  s.know();
  auto const checkpoints = s.counts().checkpoints;
  for (int i = 0; i < 2; ++i) {
    int const fd = s.make("a");
    s.write(fd, 0, "text");
    REQUIRE(s.program->sync(fd) == 0);
    close(fd);
    if (i == 0) REQUIRE(unlink(s.path("a").c_str()) == 0);
  }
  auto const is_held = [&] {
    for (auto const& one : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(one, gone).native() == s.path("a") + " (deleted)")
        return true;
    }
    return false;
  };
  while (is_held() && s.counts().checkpoints == checkpoints) usleep(1000);
  CHECK(s.counts().checkpoints == checkpoints);
}

TEST_CASE("a file that was renamed is not lost to a new one of its name", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const first = s.make("tmp");
  s.write(first, 0, "first");
  REQUIRE(s.program->sync(first) == 0);
  REQUIRE(rename(s.path("tmp").c_str(), s.path("kept").c_str()) == 0);
  auto const synced_before = s.counts().synced;
  int const second = s.make("tmp");
  s.write(second, 0, "second");
  REQUIRE(s.program->sync(second) == 0);
  CHECK(s.counts().synced == synced_before + 1);
  s.kill();
  s.recover_it();
  CHECK(s.read("kept") == "first");
  CHECK(s.read("tmp") == "second");
}

TEST_CASE("a replaced file keeps its name until the rename is durable", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const first = s.make("state"), second = s.make("tmp");
  s.write(first, 0, "first");
  REQUIRE(s.program->sync(first) == 0);
  s.write(second, 0, "second");
  REQUIRE(s.program->sync(second) == 0);
  REQUIRE(rename(s.path("tmp").c_str(), s.path("state").c_str()) == 0);
  usleep(800'000);  // it looks for removed files now and then
  s.kill();
  close(first);
  close(second);
  REQUIRE(unlink(s.path("state").c_str()) == 0);
  s.recover_it();
  CHECK(s.read("state") == "first");
  CHECK(s.read("tmp") == "second");
}

TEST_CASE("in doubt home is synced, and what was logged is revoked", "[order]") {
  service_rules keep;
  keep.look_at_once_ns = GENERATE(std::uint64_t{0}, service_rules{}.look_at_once_ns);
  served s(keep);
  if (lacks_root(s)) return;
  s.know();
  int const fd = s.make("a");
  auto const begin = [&](char const* text) {
    s.write(fd, 0, text);
    REQUIRE(s.program->sync(fd) == 0);
    return s.counts().synced;
  };
  auto before = begin("old1");
  SECTION("somebody wrote who notes nothing") { REQUIRE(pwrite(fd, "new!", 4, 8192) == 4); }
  SECTION("somebody appended past the page cache, and others noted what they wrote") {
    std::string const block(4096, 'd');
    auto const aligned = std::unique_ptr<void, void (*)(void*)>(aligned_alloc(4096, 4096), free);
    std::memcpy(aligned.get(), block.data(), block.size());
    int const direct = open(s.path("a").c_str(), O_WRONLY | O_DIRECT);
    REQUIRE(pwrite(direct, aligned.get(), block.size(), 4096) == 4096);
    close(direct);
    s.write(fd, 0, "new0");
  }
  SECTION("somebody wrote past the page cache what the log has, and nobody noted anything") {
    auto const aligned = std::unique_ptr<void, void (*)(void*)>(aligned_alloc(4096, 4096), free);
    std::memset(aligned.get(), 'd', 4096);
    int const direct = open(s.path("a").c_str(), O_WRONLY | O_DIRECT);
    REQUIRE(pwrite(direct, aligned.get(), 4096, 0) == 4096);
    REQUIRE(ftruncate(direct, 4) == 0);
    close(direct);
  }
  SECTION("the mode was changed") { REQUIRE(fchmod(fd, 0600) == 0); }
  SECTION("it has another name") {
    s.program->raise(fd, abi::order_moved);
    s.write(fd, 0, "new0");
  }
  SECTION("it has another name, and fdatasync needs not know") {
    s.program->raise(fd, abi::order_moved);
    s.write(fd, 0, "new0");
    REQUIRE(s.program->sync(fd, abi::order_request::fdatasync) == 0);
    REQUIRE(s.counts().synced == before);
    s.write(fd, 0, "new1");
  }
  SECTION("it has two names") {
    REQUIRE(link(s.path("a").c_str(), s.path("b").c_str()) == 0);
    s.write(fd, 0, "new1");
  }
  SECTION("it is mapped") {
    s.program->raise(fd, abi::order_bypass);
    s.write(fd, 0, "new2");
  }
  SECTION("too much was written") { s.write(fd, 0, std::string(400 << 10, 'n')); }
  REQUIRE(s.program->sync(fd) == 0);
  CHECK(s.counts().synced == before + 1);
  std::string const want = s.read("a");
  s.kill();
  s.recover_it();
  CHECK((s.read("a") == want));
}

TEST_CASE("an fdatasync does not pass for the fsync that keeps a mode", "[order]") {
  served s;
  if (lacks_root(s)) return;
  int const fd = open(s.path("old").c_str(), O_RDWR | O_CREAT, 0640);
  REQUIRE(fd >= 0);
  s.write(fd, 0, "was there");
  REQUIRE(s.program->sync(fd) == 0);
  std::uint64_t const as_synced = abi::lone_word({9, S_IFREG | 0640, geteuid(), getegid(), 1});
  REQUIRE(fchmod(fd, 0600) == 0);
  for (char const* const text : {"is", "was"}) {
    s.write(fd, 0, text);
    REQUIRE(s.program->sync(fd, abi::order_request::fdatasync) == 0);
    usleep(100'000);  // the log is tried
  }
  struct stat st = {};
  REQUIRE(fstat(fd, &st) == 0);
  abi::order_area& a = s.program->area();
  std::uint64_t const key = abi::order_key(a, device_word(st), st.st_ino);
  bool is_let_alone = false;
  auto const look = [&] {
    abi::each_way(abi::set_of(a, key), key, [&](unsigned w) {
      abi::order_inode const& i = abi::set_of(a, key).way[w];
      is_let_alone = (i.state.load() & abi::order_lone) != 0;
      CHECK(i.daemon_word.load() == as_synced);
    });
  };
  for (int i = 0; i < 3000 && !is_let_alone; ++i, usleep(10'000)) look();
  CHECK(is_let_alone);
  close(fd);
}

TEST_CASE("who goes without the daemon is not undone by recovery", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const fd = s.make("a");
  s.write(fd, 0, "logged");
  REQUIRE(s.program->sync(fd) == 0);
  s.stand_still();
  s.write(fd, 0, "alone!");
  REQUIRE(s.program->sync(fd) == 0);
  CHECK(s.program->alone == 1);
  CHECK(getxattr(s.path("a").c_str(), abi::order_mark_name, nullptr, 0) == sizeof(abi::order_mark));
  SECTION("the daemon is killed") {
    s.kill();
    CHECK(s.recover_it().marked == 1);
    CHECK(s.read("a") == "alone!");
  }
  SECTION("the daemon comes back, and logs it again") {
    s.go_on();
    s.write(fd, 0, "synced");
    REQUIRE(s.program->sync(fd) == 0);  // at home
    CHECK(s.program->alone == 1);
    CHECK((s.program->state(fd) & (abi::order_native | abi::order_marked)) == 0);
    s.write(fd, 6, " and logged");
    REQUIRE(s.program->sync(fd) == 0);
    s.kill();
    CHECK(s.recover_it().marked == 0);
    CHECK(s.read("a") == "synced and logged");
  }
  CHECK(getxattr(s.path("a").c_str(), abi::order_mark_name, nullptr, 0) < 0);
}

TEST_CASE("a daemon that ends leaves its log empty", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const fd = s.make("a");
  s.write(fd, 0, "text");
  REQUIRE(s.program->sync(fd) == 0);
  s.is_over = true;
  s.loop.join();
  for (int i = 0; i < 1000 && !s.daemon->end(); ++i) s.daemon->turn();
  CHECK(s.program->area().head.incarnation == 0);
  s.daemon.reset();
  s.disk.reset();
  CHECK(s.recover_it().records == 0);
  s.write(fd, 0, "more");
  CHECK(s.program->sync(fd) == 0);
}

TEST_CASE("on a machine that was not restarted nothing is replayed", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const fd = s.make("a");
  s.write(fd, 0, "logged");
  REQUIRE(s.program->sync(fd) == 0);
  s.kill();
  s.write(fd, 0, "later!");
  {
    // As `sluice-order serve` begins.
    file_disk d(s.log, file_disk::use::write);
    superblock x = read_slots(d).in_force;
    auto const boot = boot_id();
    std::copy(boot.begin(), boot.end(), std::begin(x.boot));
    REQUIRE(write_slot(d, x) == 0);
  }
  CHECK(s.recover_it().is_running);
  CHECK(s.read("a") == "later!");
  CHECK(s.recover_it().records == 0);
}
