// SPDX-License-Identifier: Apache-2.0
// order_unseen DIR: descriptors that no stage saw being opened, by raw system calls as a ring makes
// them. What is written by them may have left no trace, so their flags are looked at when they are
// synced: a file that is written past the log is let go of by it, for good.
#include "order_board.h"

using namespace sluice;

namespace {

/// No libc, so no stage.
long open_unseen(std::string const& path, int flags) {
  long result = SYS_openat;
  long const dir = AT_FDCWD, how = flags | O_CLOEXEC;
  register long mode __asm__("r10") = 0;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(dir), "S"(path.c_str()), "d"(how), "r"(mode)
                   : "rcx", "r11", "memory");
  return result;
}

/// Whether the log has let go of it when its fsync has returned.
bool is_let_go(abi::order_area& area, std::string const& path, int flags) {
  struct stat st;
  CHECK(unlink(path.c_str()) == 0 || errno == ENOENT);
  close(make_file(path, 8192));
  CHECK(stat(path.c_str(), &st) == 0);
  raise(area, st, abi::order_logged);
  int const fd = static_cast<int>(open_unseen(path, flags));
  CHECK(fd >= 0 && fsync(fd) == 0);
  close(fd);
  constexpr std::uint64_t gone = abi::order_bypass | abi::order_apart;
  return (take(area, st).flags & gone) == gone;
}

}  // namespace

int main(int argc, char** argv) {
  std::string const path = folder(argc, argv) + "/unseen";
  abi::order_area& area = map_order_area();
  CHECK(!is_let_go(area, path, O_RDWR));
  CHECK(is_let_go(area, path, O_RDWR | O_DIRECT));
  CHECK(is_let_go(area, path, O_WRONLY | O_SYNC));
  CHECK(is_let_go(area, path, O_RDWR | O_DSYNC));
  CHECK(!is_let_go(area, path, O_RDONLY | O_DIRECT));  // who only reads leaves nothing behind
  return 0;
}
