// SPDX-License-Identifier: Apache-2.0
// order_unheld DIR: beside a file that the daemon holds, writes to another; and then the numbers of
// that one's descriptors are given to the held file, in each way that a program can.
#include <fcntl.h>
#include <sys/syscall.h>

#include <functional>
#include <set>

#include "order_board.h"

using namespace sluice;

namespace {

abi::order_area* area;
std::string held, other;

/// A descriptor of the other file that has been written by.
int written_by() {
  int const fd = open(other.c_str(), O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0 && pwrite(fd, "text", 4, 0) == 4 && pwrite(fd, "text", 4, 0) == 4);
  return fd;
}

/// `give` gives the number to the held file: what is written by it is noted there.
void given(std::function<void(int)> const& give) {
  int const fd = written_by();
  give(fd);
  CHECK(pwrite(fd, "text", 4, 4096) == 4 && write(fd, "text", 4) == 4);
  noted const n = take(*area, stat_of(fd));
  CHECK(n.pages == (std::set<std::uint64_t>{0, 1}) && n.flags == 0);
  close(fd);
}

void opens_as(int fd) { CHECK(open(held.c_str(), O_RDWR | O_CLOEXEC) == fd); }

void numbers() {
  given([](int fd) {
    CHECK(close(fd) == 0);
    opens_as(fd);
  });
  given([](int fd) {
    CHECK(syscall(SYS_close, fd) == 0);
    opens_as(fd);
  });
  given([](int fd) {
    CHECK(close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0) == 0);
    opens_as(fd);
  });
  given([](int fd) {
    int const from = open(held.c_str(), O_RDWR | O_CLOEXEC);
    CHECK(dup2(from, fd) == fd && close(from) == 0);
  });
  given([](int fd) {
    int const from = open(held.c_str(), O_RDWR | O_CLOEXEC);
    CHECK(pwrite(from, "text", 4, 0) == 4 && take(*area, stat_of(from)).pages.size() == 1);
    CHECK(dup3(from, fd, O_CLOEXEC) == fd && close(from) == 0);
  });
  given([](int fd) {
    CHECK(fclose(fdopen(fd, "r+")) == 0);
    opens_as(fd);
  });
  // One that is a copy, of a number that is known, is looked at by itself.
  int const fd = written_by(), copy = dup(fd);
  CHECK(copy >= 0 && close(copy) == 0);
  opens_as(copy);
  CHECK(pwrite(copy, "text", 4, 0) == 4 && take(*area, stat_of(copy)).pages.size() == 1);
  close(copy);
  close(fd);
}

/// It is held from now on: what is known of the descriptor is not whether that is so.
void held_later() {
  int const fd = written_by();
  raise(*area, stat_of(fd), 0);
  CHECK(take(*area, stat_of(fd)).pages.empty());
  CHECK(pwrite(fd, "text", 4, 8192) == 4);
  CHECK(take(*area, stat_of(fd)).pages == std::set<std::uint64_t>{2});
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  area = &map_order_area();
  held = dir + "/held";
  other = dir + "/other";
  for (auto const& path : {held, other}) close(make_file(path, 16 * 4096));
  struct stat st;
  CHECK(stat(held.c_str(), &st) == 0);
  area->head.unwatched = 0;
  raise(*area, st, 0);
  take(*area, st);
  if (argc > 2) {
    int const fd = written_by();
    for (int i = 0; i < 1000; ++i) CHECK(write(fd, "text", 4) == 4);
    return close(fd);
  }
  numbers();
  held_later();
}
