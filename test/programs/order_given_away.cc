// SPDX-License-Identifier: Apache-2.0
// order_given_away DIR: before a file gets another owner or group the log lets go of it, whichever
// call does that, and where no daemon answers home has all of it; what the log has nothing of
// nobody asks about. The program keeps its locks of the file.
#include <sys/syscall.h>
#include <sys/wait.h>

#include "order_board.h"

using namespace sluice;

namespace {

/// A lock of this process is what another one meets.
bool is_locked(int fd) {
  pid_t const child = fork();
  if (child == 0) {
    struct flock all = {F_WRLCK, SEEK_SET, 0, 0, 0};
    CHECK(fcntl(fd, F_GETLK, &all) == 0);
    _exit(all.l_type == F_UNLCK ? 2 : 0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0 || status == 2 << 8);
  return status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string const path = folder(argc, argv) + "/given";
  int const fd = make_file(path, 8192);
  abi::order_area& area = map_order_area();
  uid_t const user = geteuid();
  gid_t const group = getegid();
  struct flock lock = {F_WRLCK, SEEK_SET, 0, 0, 0};
  CHECK(fcntl(fd, F_SETLK, &lock) == 0);
  auto const calls = [&](std::uint64_t flags, auto const& change) {
    raise(area, stat_of(fd), flags);
    std::uint32_t const before = area.head.doorbell;
    CHECK(change() == 0);
    CHECK(is_locked(fd));
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
  constexpr std::uint32_t over = abi::order_void_done | abi::order_void_failed;
  CHECK((area.head.voided & over) == 0);
  std::uint64_t const daemon = area.head.incarnation.exchange(0);
  calls(abi::order_logged, [&] { return chown(path.c_str(), user, group); });
  CHECK((area.head.voided & over) != 0);
  area.head.incarnation = daemon;
  close(fd);
  return 0;
}
