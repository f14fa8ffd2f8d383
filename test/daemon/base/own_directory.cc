// SPDX-License-Identifier: Apache-2.0
// A directory of one's own where neighbours may rename: what is put in its place is not emptied,
// and nobody is told to remove it.
#include "base/own_directory.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

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
