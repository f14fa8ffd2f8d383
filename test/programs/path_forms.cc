// SPDX-License-Identifier: Apache-2.0
// path_forms FORM ROOT COUNT: COUNT times stat (forms of names) or open and read of one byte (forms
// that only the opened file can tell) of the file ROOT/t/d/file, named by FORM. ROOT/out is a
// sibling of the target ROOT/t; ROOT/out/in -> t/d and ROOT/t/away -> ROOT/out are links.
#include "check.h"

namespace {
std::string root;

int at(std::string const& dir, int flags = O_DIRECTORY | O_RDONLY) {
  int const fd = open((root + dir).c_str(), flags);
  CHECK(fd >= 0);
  return fd;
}

void enter(std::string const& dir) { CHECK(chdir((root + dir).c_str()) == 0); }

void stat_at(int fd, char const* name) {
  struct stat s;
  CHECK(fstatat(fd, name, &s, 0) == 0);
}

void read_at(int fd, char const* name) {
  int const file = openat(fd, name, O_RDONLY);
  char byte;
  CHECK(file >= 0 && read(file, &byte, 1) == 1 && close(file) == 0);
}
}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 4);
  std::string const form = argv[1];
  root = argv[2];
  int const count = atoi(argv[3]);
  int fd = AT_FDCWD;
  std::string name;
  bool open_it = false;
  if (form == "absolute") name = root + "/t/d/file";
  if (form == "slashes") name = root + "//t/./d///file";
  if (form == "dotdot_in") name = root + "/out/../t/d/file";
  if (form == "dotdot_out") name = root + "/t/../out/file";
  if (form == "outside") name = root + "/out/file";
  if (form == "prefix") name = root + "/tt/file";
  if (form == "cwd") enter("/t/d"), name = "file";
  if (form == "cwd_dotdot") enter("/out"), name = "../t/d/file";
  if (form == "cwd_leaves") enter("/t"), enter("/out"), name = "file";
  if (form == "fchdir") {
    int const d = at("/t/d");
    CHECK(fchdir(d) == 0);
    name = "file";
  }
  if (form == "dirfd") fd = at("/t/d"), name = "file";
  if (form == "dirfd_dotdot") fd = at("/out"), name = "../t/d/file";
  if (form == "dirfd_absolute") fd = at("/out"), name = root + "/t/d/file";
  if (form == "o_path") fd = at("/t/d", O_PATH | O_DIRECTORY), name = "file";
  if (form == "dirfd_dup") fd = dup(at("/t/d")), name = "file";
  if (form == "link_in") open_it = true, name = root + "/out/in/file";
  if (form == "link_out") open_it = true, name = root + "/t/away/file";
  if (form == "file_link_in") open_it = true, name = root + "/out/shortcut";
  if (form == "cwd_by_link") enter("/out/in"), open_it = true, name = "file";
  CHECK(!name.empty());
  for (int i = 0; i < count; ++i) open_it ? read_at(fd, name.c_str()) : stat_at(fd, name.c_str());
  return 0;
}
