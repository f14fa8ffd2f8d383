// SPDX-License-Identifier: Apache-2.0
// What a user mounts over a directory of his holds up no journal of another. Needs root, loop
// devices and FUSE.
#include "journal/mount_points.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

#include "base/believed_place.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "journal/opener.h"
#include "lib/silent_fuse.h"
#include "order_served.h"
#include "recover_bench.h"

using namespace sluice::journal;
using sluice::descriptor;
using sluice::test::bench;
using sluice::test::file_system;
using sluice::test::lacks_root;
using sluice::test::served;
using sluice::test::silent_fuse;

namespace {

void skip() { WARN("skip: needs root, loop devices and FUSE"); }

file_id id_of(std::string const& path) {
  descriptor const fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  file_id id;
  REQUIRE(identify(fd.get(), id) == 0);
  return id;
}

/// What recovery says of a file: an errno, or 0 when it finds it.
int found_by_recovery(file_id const& id) {
  mounted_home h;
  h.keep_only({id.fs});
  descriptor const fd(h.open(id, O_PATH));
  return fd ? 0 : -fd.get();
}

}  // namespace

TEST_CASE("what is mounted over a file system that no record needs is not asked", "[order]") {
  file_system needed, another;
  if (!needed.is_mounted || !another.is_mounted) return skip();
  file_id const id = id_of(needed.dir);
  silent_fuse over(another.dir);
  if (!over.is_mounted()) return skip();
  int error = -1;
  CHECK_FALSE(over.is_asked_by([&] { error = found_by_recovery(id); }));
  CHECK(error == 0);
}

TEST_CASE("a file system under another is found where it is mounted elsewhere", "[order]") {
  file_system fs;
  if (!fs.is_mounted) return skip();
  file_id const id = id_of(fs.dir);
  std::string const elsewhere = fs.holder.dir + "-elsewhere";
  {
    silent_fuse over(GENERATE(true, false) ? fs.dir : fs.holder.dir);
    if (!over.is_mounted()) return skip();
    int error = -1;
    CHECK_FALSE(over.is_asked_by([&] { error = found_by_recovery(id); }));
    CHECK(error == ENODEV);
  }
  REQUIRE(found_by_recovery(id) == 0);
  REQUIRE(
      sluice::test::shell("mkdir " + elsewhere + " && mount --bind " + fs.dir + " " + elsewhere));
  {
    silent_fuse over(fs.dir);
    int error = -1;
    CHECK_FALSE(over.is_asked_by([&] { error = found_by_recovery(id); }));
    CHECK(error == 0);
  }
  CHECK(sluice::test::shell("umount " + elsewhere + " && rmdir " + elsewhere));
}

TEST_CASE("records of a file system under another are kept until it is back", "[order]") {
  bench b;
  sluice::test::scratch const beside;
  b.log = beside.dir + "/log";
  if (!b.begin()) return;
  b.write("a", "home");
  b.tell_data(b.id_of(b.path("a")), 0, "LOGS");
  b.crash();
  {
    silent_fuse over(b.at.dir);
    if (!over.is_mounted()) return skip();
    std::string said;
    CHECK_FALSE(over.is_asked_by([&] {
      try {
        b.recover_it();
      } catch (sluice::error const& e) {
        said = e.what();
      }
    }));
    CHECK_THAT(said, Catch::Contains("is not mounted for writing"));
  }
  CHECK(b.recover_it().done.records == 1);
  CHECK(b.read("a") == "LOGS");
}

TEST_CASE("root asks nothing of a user's FUSE whether a journal there is root's", "[order]") {
  file_system fs;
  if (!fs.is_mounted) return skip();
  for (auto const* name : {"/his", "/way", "/way/his"})
    REQUIRE(mkdir((fs.dir + name).c_str(), 0777) == 0);
  REQUIRE(symlink("way/../his/inner", (fs.dir + "/link").c_str()) == 0);
  silent_fuse his(fs.dir + "/his", 65011), also(fs.dir + "/way/his", 65011);
  if (!his.is_mounted() || !also.is_mounted()) return skip();
  std::string const path = GENERATE("/his/log", "/his", "/link", "/link/../log", "/way/his/log");
  for (bool const is_opened : {false, true}) {
    std::string said;
    auto const use = [&] {
      try {
        if (is_opened) file_disk(fs.dir + path, file_disk::use::look);
        if (!is_opened) become_owner(fs.dir + path);
      } catch (sluice::error const& e) {
        said = e.what();
      }
    };
    CHECK_FALSE((path.starts_with("/way") ? also : his).is_asked_by(use));
    CHECK_THAT(said, Catch::Contains("(uid 65011 serves it by FUSE)"));
  }
}

TEST_CASE("root believes an open file as little as its name", "[order]") {
  file_system fs;
  if (!fs.is_mounted) return skip();
  descriptor const before(open(fs.dir.c_str(), O_PATH | O_CLOEXEC));
  silent_fuse his(fs.dir, 65011);
  if (!his.is_mounted()) return skip();
  descriptor const after(open(fs.dir.c_str(), O_PATH | O_CLOEXEC));
  CHECK_FALSE(sluice::why_not_believed(before.get()));
  CHECK(sluice::why_not_believed(after.get()));
}

TEST_CASE("a directory is found by its name through a bind mount of its own", "[order]") {
  file_system fs;
  if (!fs.is_mounted) return skip();
  std::string const dir = fs.dir + "/d", inner = dir + "/inner";
  REQUIRE((mkdir(dir.c_str(), 0755) == 0 && mkdir(inner.c_str(), 0755) == 0));
  file_id const id = id_of(inner);
  bool const is_its_own = GENERATE(true, false);
  file_system other;
  REQUIRE(sluice::test::shell("mount --bind " + (is_its_own ? dir : other.dir) + " " + dir));
  mounted_home h;
  h.keep_only({id.fs});
  descriptor const fd(h.open(id, O_RDONLY | O_DIRECTORY));
  REQUIRE(fd);
  CHECK(bool(descriptor(h.open_by_name(id.fs, fd.get()))) == is_its_own);
  CHECK(sluice::test::shell("umount " + dir));
}

TEST_CASE("a file is told of by its name only where that is its name, else by its inode",
          "[order]") {
  file_system fs;
  if (!fs.is_mounted) return skip();
  std::string const dir = fs.dir + "/d", first = dir + "/a";
  REQUIRE(mkdir(dir.c_str(), 0777) == 0);
  descriptor const fd(open(first.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct stat st = {};
  REQUIRE(fstat(fd.get(), &st) == 0);
  mounted_home h;
  file_id const id = id_of(fs.dir);
  h.keep_only({id.fs});
  std::string const inode = std::to_string(st.st_ino);
  auto const is_nameless = [&](std::string const& said) {
    return said.starts_with("the file with inode " + inode) &&
           said.ends_with("-inum " + inode + ")");
  };
  CHECK(h.place_of(id.fs, fd.get()) == first);
  {
    silent_fuse over(dir);
    if (!over.is_mounted()) return skip();
    std::string said;
    CHECK_FALSE(over.is_asked_by([&] { said = h.place_of(id.fs, fd.get()); }));
    CHECK(is_nameless(said));
  }
  // The kernel's own name for it is that of a link that is gone.
  REQUIRE((link(first.c_str(), (dir + "/b").c_str()) == 0 && unlink(first.c_str()) == 0));
  CHECK(is_nameless(h.place_of(id.fs, fd.get())));
}

TEST_CASE("the loop asks nothing that is mounted over a file's directory", "[order]") {
  served s;
  if (lacks_root(s)) return;
  REQUIRE(mkdir(s.path("shared").c_str(), 0777) == 0);
  descriptor const shared(open(s.path("shared").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int const known = s.make("shared/first");
  REQUIRE(s.program->sync(known) == 0);
  s.know();
  {
    silent_fuse over(s.path("shared"));
    if (!over.is_mounted()) return skip();
    int const fd = openat(shared.get(), "new", O_RDWR | O_CREAT | O_EXCL, 0640);
    REQUIRE(fd >= 0);
    s.program->created(fd);
    s.write(fd, 0, "text");
    int said = -1;
    CHECK_FALSE(over.is_asked_by([&] { said = s.program->sync(fd); }));
    CHECK(said == 0);
    auto const before = s.counts().logged;
    int const free = s.make("free");
    s.write(free, 0, "text");
    CHECK(s.program->sync(free) == 0);
    CHECK(s.counts().logged == before + 1);
    close(free);
    close(fd);
  }
  close(known);
}

TEST_CASE("files below a mount of their own device are logged", "[order]") {
  served s;
  if (lacks_root(s)) return;
  for (auto const* name : {"from", "to"}) REQUIRE(mkdir(s.path(name).c_str(), 0777) == 0);
  REQUIRE(sluice::test::shell("mount --bind " + s.path("from") + " " + s.path("to")));
  s.kill();
  s.begin();  // it has these mounts
  s.know();
  int const known = s.make("to/first");
  CHECK(s.program->sync(known) == 0);
  auto const before = s.counts().logged;
  int const fd = s.make("to/new");
  s.write(fd, 0, "text");
  CHECK(s.program->sync(fd) == 0);
  CHECK(s.counts().logged == before + 1);
  close(fd);
  close(known);
  CHECK(sluice::test::shell("umount -l " + s.path("to")));
}

TEST_CASE("the loop asks nothing that is mounted where a file had its name", "[order]") {
  served s;
  if (lacks_root(s)) return;
  s.know();
  int const fd = s.make("a");
  s.write(fd, 0, "text");
  auto const before = s.counts().logged;
  REQUIRE(s.program->sync(fd) == 0);
  REQUIRE(s.counts().logged == before + 1);
  REQUIRE((unlink(s.path("a").c_str()) == 0 && mkdir(s.path("a").c_str(), 0777) == 0));
  {
    silent_fuse over(s.path("a"));
    if (!over.is_mounted()) return skip();
    s.write(fd, 4, "more");
    int said = -1;
    CHECK_FALSE(over.is_asked_by([&] { said = s.program->sync(fd); }));
    CHECK(said == 0);
  }
  close(fd);
}

TEST_CASE("the loop asks no file system of a user that a program has open", "[order]") {
  served s;
  if (lacks_root(s)) return;
  REQUIRE(mkdir(s.path("his").c_str(), 0777) == 0);
  descriptor const ours(open(s.dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  silent_fuse his(s.path("his"));
  if (!his.is_mounted()) return skip();
  descriptor const there(open(s.path("his").c_str(), O_PATH | O_CLOEXEC));
  struct statx x = {};
  REQUIRE(statx(there.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &x) == 0);
  auto* const slot = s.ask([&](service const&) {
    std::uint32_t user = 0;
    auto const kind = static_cast<std::uint32_t>(sluice::abi::order_request::directory);
    auto* const asked = s.program->post(ours.get(), kind, user);
    asked->fd = there.get();
    asked->device = std::uint64_t{x.stx_dev_major} << 32 | x.stx_dev_minor;
    asked->inode = x.stx_ino;
    return asked;
  });
  CHECK_FALSE(his.is_asked_by([&] {
    for (auto word = slot->word.load(); (word & 7) != 4; word = slot->word.load())
      sluice::test::guest::nap(*slot, word);
  }));
  CHECK(slot->result.load() == sluice::abi::go_native);
}
