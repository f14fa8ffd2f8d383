// SPDX-License-Identifier: Apache-2.0
// order_given_up DIR: by whatever call a name is removed or moved away, when the file that had it
// was changed last is noted for whoever gets the name next.
#include <sys/syscall.h>

#include "order_board.h"

using namespace sluice;

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  abi::order_area& area = map_order_area();
  struct way {
    char const* name;
    long (*work)(char const* path, char const* other);
    bool is_directory = false;
  };
  constexpr way ways[] = {
      {"unlink", [](char const* p, char const*) { return long{unlink(p)}; }},
      {"unlinkat", [](char const* p, char const*) { return long{unlinkat(AT_FDCWD, p, 0)}; }},
      {"remove", [](char const* p, char const*) { return long{remove(p)}; }},
      {"rmdir", [](char const* p, char const*) { return long{rmdir(p)}; }, true},
      {"rename", [](char const* p, char const* o) { return long{rename(p, o)}; }},
      {"renameat", [](char const* p, char const* o) { return long{renameat(-100, p, -100, o)}; }},
      {"renameat2",
       [](char const* p, char const* o) { return long{renameat2(-100, p, -100, o, 0)}; }},
      {"sys_unlinkat",
       [](char const* p, char const*) { return syscall(SYS_unlinkat, AT_FDCWD, p, 0); }},
      {"sys_renameat2",
       [](char const* p, char const* o) { return syscall(SYS_renameat2, -100, p, -100, o, 0); }},
  };
  for (way const& w : ways) {
    std::string const path = dir + "/" + w.name;
    if (w.is_directory)
      CHECK(mkdir(path.c_str(), 0755) == 0);
    else
      close(make_file(path, 0));
    struct stat st;
    CHECK(stat(path.c_str(), &st) == 0);
    abi::given_up(area, w.name) = changed_ns(st) - 1;
    CHECK(w.work((path + (w.is_directory ? "/" : "")).c_str(), (path + ".other").c_str()) == 0);
    CHECK(abi::given_up(area, w.name).load() == changed_ns(st));
  }
  CHECK(unlink(nullptr) == -1 && errno == EFAULT);
}
