// SPDX-License-Identifier: Apache-2.0
// A directory of one's own where neighbours may rename: what is put in its place is not emptied,
// and nobody is told to remove it.
#include "base/own_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "lib/refusal.h"
#include "lib/scratch.h"

namespace fs = std::filesystem;
using namespace sluice;
using Catch::Contains;

TEST_CASE("own directory: it goes with all that is in it") {
  test::scratch const s;
  std::string why;
  own_directory d(s.dir + "/target", "x");
  std::ofstream(d.path() + "/file") << "ours";
  CHECK(d.remove(why, [] { return true; }));
  CHECK_FALSE(fs::exists(s.dir + "/target"));
}

TEST_CASE("own directory: what somebody put in its place stays, and is not called safe to remove") {
  test::scratch const s;
  fs::create_directory(s.dir + "/mine");
  fs::permissions(s.dir + "/mine", fs::perms::owner_all);
  std::ofstream(s.dir + "/mine/file") << "precious";
  std::string why;
  own_directory d(s.dir, "x");
  std::string const name = d.path();
  std::ofstream(name + "/file") << "ours";
  fs::rename(name, s.dir + "/away");
  fs::rename(s.dir + "/mine", name);
  CHECK_FALSE(d.remove(why, [] { return true; }));
  CHECK_THAT(why, Contains("is another directory") && !Contains("safe"));
  CHECK(fs::exists(name + "/file"));
  CHECK(fs::is_empty(s.dir + "/away"));
}

TEST_CASE("own directory: where it was moved away, nothing is said to have its name") {
  test::scratch const s;
  std::string why;
  own_directory d(s.dir, "x");
  fs::rename(d.path(), s.dir + "/away");
  CHECK_FALSE(d.remove(why, [] { return true; }));
  CHECK_THAT(why, Contains("is gone") && !Contains("another"));
}

namespace {

std::string made_in(std::string const& dir) {
  return test::refusal_of([&] { own_directory(dir, "x"); });
}

}  // namespace

TEST_CASE("own directory: none is made where a stranger may rename it") {
  test::scratch const s;
  std::string const target = s.dir + "/target";
  REQUIRE(mkdir(target.c_str(), 0755) == 0);
  CHECK(made_in(target) == "accepted");
  REQUIRE(chmod(target.c_str(), 0777) == 0);
  CHECK_THAT(made_in(target), Contains("everybody may rename"));
  REQUIRE(chmod(target.c_str(), 01777) == 0);
  CHECK(made_in(target) == "accepted");
  if (geteuid() != 0) return;
  REQUIRE(chmod(target.c_str(), 0775) == 0);
  CHECK(made_in(target) == "accepted");  // nobody else is in root's group
  REQUIRE(chown(target.c_str(), 0, 65002) == 0);
  CHECK_THAT(made_in(target), Contains("its group may rename"));
  REQUIRE(chmod(target.c_str(), 01755) == 0);
  REQUIRE(chown(target.c_str(), 65002, 0) == 0);
  CHECK_THAT(made_in(target), Contains("its owner, uid 65002, may rename"));
  CHECK(fs::is_empty(target));
}

TEST_CASE("own directory: what a process that is gone left is not removed by its number alone") {
  test::scratch const s;
  fs::create_directory(s.dir + "/work");
  std::ofstream(s.dir + "/work/thesis") << "precious";
  struct stat st = {};
  REQUIRE(stat((s.dir + "/work").c_str(), &st) == 0);
  REQUIRE(chmod(s.dir.c_str(), 0777) == 0);
  CHECK_FALSE(remove_left_directory(s.dir + "/work", st.st_ino));
  CHECK(fs::exists(s.dir + "/work/thesis"));
  REQUIRE(chmod(s.dir.c_str(), 0700) == 0);
  CHECK_FALSE(remove_left_directory(s.dir + "/work", st.st_ino + 1));
  CHECK(remove_left_directory(s.dir + "/work", st.st_ino));
  CHECK_FALSE(fs::exists(s.dir + "/work"));
}
