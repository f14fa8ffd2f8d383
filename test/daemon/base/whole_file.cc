// SPDX-License-Identifier: Apache-2.0
// A small file that another user may read stays its maker's. Needs root.
#include "base/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/descriptor.h"
#include "base/error.h"
#include "lib/scratch.h"

using namespace sluice;

namespace {

/// 0 or the errno with which that user opens it.
int opened_by(uid_t user, std::string const& path, int access) {
  pid_t const pid = fork();
  if (pid == 0) {
    if (setresuid(user, user, user) != 0) _exit(255);
    _exit(descriptor(open(path.c_str(), access)) ? 0 : errno);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a file for one reader is his to read, and nothing else", "[base]") {
  if (geteuid() != 0) {
    WARN("skip: needs root");
    return;
  }
  constexpr uid_t reader = 64001, other = 64002;
  test::scratch const own;
  REQUIRE(chmod(own.dir.c_str(), 0711) == 0);
  std::string const path = own.dir + "/result";
  REQUIRE(replace_file(path, "text", {.reader = reader}));
  struct stat st = {};
  REQUIRE(stat(path.c_str(), &st) == 0);
  CHECK(st.st_uid == 0);
  CHECK(opened_by(reader, path, O_RDONLY) == 0);
  CHECK(opened_by(reader, path, O_RDWR) == EACCES);
  CHECK(opened_by(other, path, O_RDONLY) == EACCES);
  CHECK(reader_of(path) == reader);
  REQUIRE(replace_file(path, "text"));
  CHECK_FALSE(reader_of(path).has_value());
}

TEST_CASE("a file that is of no use makes room, and is kept", "[base]") {
  test::scratch const own;
  std::string const path = own.dir + "/book";
  REQUIRE(replace_file(path, "{"));
  std::string const aside = set_aside(path);
  CHECK_FALSE(read_file(path).has_value());
  CHECK(read_file(aside) == "{");
  CHECK(set_aside(path) == path);  // not there
  CHECK_FALSE(read_kept(path));
  REQUIRE(symlink(path.c_str(), path.c_str()) == 0);
  CHECK_FALSE(read_file(path));
  CHECK_THROWS_AS(read_kept(path), sluice::error);
}
