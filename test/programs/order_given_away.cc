// SPDX-License-Identifier: Apache-2.0
// order_given_away DIR: before a file gets another owner or group the log lets go of it, whichever
// call does that; what the log has nothing of nobody asks about.
#include <sys/syscall.h>

#include "order_board.h"

using namespace sluice;

int main(int argc, char** argv) {
  std::string const path = folder(argc, argv) + "/given";
  int const fd = make_file(path, 8192);
  abi::order_area& area = map_order_area();
  uid_t const user = geteuid();
  gid_t const group = getegid();
  auto const calls = [&](std::uint64_t flags, auto const& change) {
    raise(area, stat_of(fd), flags);
    std::uint32_t const before = area.head.doorbell;
    CHECK(change() == 0);
    take(area, stat_of(fd));
    return area.head.doorbell - before;
  };
  auto const all = [&](std::uint64_t flags) {
    std::uint32_t asked = calls(flags, [&] { return fchown(fd, user, group); });
    asked += calls(flags, [&] { return chown(path.c_str(), user, group); });
    asked += calls(flags, [&] { return lchown(path.c_str(), user, group); });
    asked += calls(flags, [&] { return fchownat(AT_FDCWD, path.c_str(), user, group, 0); });
    asked += calls(flags, [&] { return fchownat(fd, "", user, group, AT_EMPTY_PATH); });
    asked += calls(flags, [&] { return syscall(SYS_fchown, fd, user, group); });
    asked +=
        calls(flags, [&] { return syscall(SYS_fchownat, AT_FDCWD, path.c_str(), user, group, 0); });
    return asked;
  };
  CHECK(all(0) == 0);
  CHECK(all(abi::order_logged) == 7);
  CHECK(calls(abi::order_logged, [&] { return fchmod(fd, 0600); }) == 0);
  close(fd);
  return 0;
}
