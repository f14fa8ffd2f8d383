// SPDX-License-Identifier: Apache-2.0
// apart directory|descriptors|range INSIDE OUTSIDE: a thread takes a directory or descriptors of
// its own, by unshare() or by close_range(). From then on one name, or one number, means
// INSIDE/file in the thread and OUTSIDE/file in the others. Both use it 10 times, in turns.
#include "check.h"

#include <linux/close_range.h>
#include <sched.h>
#include <barrier>
#include <thread>

namespace {

constexpr int rounds = 10;
std::string inside, outside;
std::barrier turn(2);

// In turns: first the thread, then the main one.
template <class Use>
void use_in_turns(bool is_first, Use&& use) {
  for (int i = 0; i < rounds; ++i) {
    if (is_first) use();
    turn.arrive_and_wait();
    if (!is_first) use();
    turn.arrive_and_wait();
  }
}

int open_file(std::string const& where) {
  int const fd = open(where.c_str(), O_RDONLY);
  CHECK(fd >= 0);
  return fd;
}

// Whose file it is says its first byte.
void check_byte(int fd, char wanted) {
  char byte = 0;
  CHECK(pread(fd, &byte, 1, 0) == 1 && byte == wanted);
}

void use_name(char wanted) {
  int const fd = open_file("file");
  check_byte(fd, wanted);
  CHECK(close(fd) == 0);
}

void by_directory() {
  CHECK(chdir(outside.c_str()) == 0);
  use_name('o');
  std::thread own([] {
    CHECK(unshare(CLONE_FS) == 0 && chdir(inside.c_str()) == 0);
    use_in_turns(true, [] { use_name('i'); });
  });
  use_in_turns(false, [] { use_name('o'); });
  own.join();
}

template <class Part>
void by_descriptors(Part&& part) {
  int const fd = open_file(outside + "/file");
  check_byte(fd, 'o');
  std::thread own([&] {
    CHECK(part() == 0);
    int const mine = open_file(inside + "/file");
    CHECK(dup2(mine, fd) == fd && close(mine) == 0);
    use_in_turns(true, [&] { check_byte(fd, 'i'); });
  });
  use_in_turns(false, [&] { check_byte(fd, 'o'); });
  own.join();
}

}  // namespace

int main(int, char** argv) {
  std::string const mode = argv[1];
  inside = argv[2];
  outside = argv[3];
  if (mode == "directory") by_directory();
  if (mode == "descriptors") by_descriptors([] { return unshare(CLONE_FILES); });
  if (mode == "range")
    by_descriptors([] { return close_range(1 << 20, ~0u, CLOSE_RANGE_UNSHARE); });
}
