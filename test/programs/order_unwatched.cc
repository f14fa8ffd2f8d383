// SPDX-License-Identifier: Apache-2.0
// order_unwatched DIR: what the daemon does not hold nobody notes; but a change that it may have
// missed when it began to hold the file is noted after the call.
#include <fcntl.h>
#include <sys/syscall.h>

#include <atomic>
#include <thread>

#include "order_board.h"

using namespace sluice;

namespace {

abi::order_area* area;

noted take(int fd) { return take(*area, stat_of(fd)); }
void watch(int fd) { raise(*area, stat_of(fd), 0); }

void change(int fd) {
  CHECK(pwrite(fd, "text", 4, 0) == 4 && write(fd, "text", 4) == 4);
  CHECK(ftruncate(fd, 100) == 0);
  FILE* const f = fdopen(dup(fd), "r+");
  CHECK(f != nullptr && fputs("text", f) > 0 && fflush(f) == 0 && fclose(f) == 0);
}

void wait_until_inside(pid_t tid, long number) {
  for (int i = 0; i < 1000; ++i, nap_ms(5)) {
    FILE* const f = fopen(("/proc/self/task/" + std::to_string(tid) + "/syscall").c_str(), "r");
    long inside = -1;
    CHECK(f != nullptr);
    bool const is_told = fscanf(f, "%ld", &inside) == 1;
    fclose(f);
    if (is_told && inside == number) return;
  }
  CHECK(!"inside the call");
}

/// A write that has to wait for its bytes, begun while nobody holds the file.
noted hold_meanwhile(int fd) {
  int ends[2];
  std::atomic<pid_t> tid = 0;
  CHECK(pipe(ends) == 0);
  std::thread writer([&] {
    tid = static_cast<pid_t>(syscall(SYS_gettid));
    CHECK(splice(ends[0], nullptr, fd, nullptr, 4, 0) == 4);
  });
  while (tid == 0) nap_ms(1);
  wait_until_inside(tid, SYS_splice);
  area->head.unwatched = 0;
  watch(fd);
  CHECK(write(ends[1], "text", 4) == 4);
  writer.join();
  close(ends[0]);
  close(ends[1]);
  return take(fd);
}

/// Where a file lies is remembered for a second, but not for another file with its inode number.
void give_number_again(std::string const& dir) {
  std::string const outside = dir + "/../outside", inside = dir + "/inside";
  for (int i = 0; i < 50; ++i) {
    close(open(outside.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
    int fd = open(outside.c_str(), O_RDWR);
    struct stat before, now;
    CHECK(pwrite(fd, "text", 4, 0) == 4 && fstat(fd, &before) == 0 && close(fd) == 0);
    CHECK(unlink(outside.c_str()) == 0);
    close(open(inside.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
    fd = open(inside.c_str(), O_RDWR);
    watch(fd);
    CHECK(pwrite(fd, "text", 4, 0) == 4 && fstat(fd, &now) == 0);
    CHECK(take(fd).pages.size() == 1);
    close(fd);
    CHECK(unlink(inside.c_str()) == 0);
    if (now.st_ino == before.st_ino) return;
  }
  fprintf(stderr, "no inode number came again\n");
}

/// Nor for the file itself when it was moved, by whomever.
void move_in(std::string const& dir, bool is_raw) {
  std::string const outside = dir + "/../outside", inside = dir + "/inside";
  close(open(outside.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  int fd = open(outside.c_str(), O_RDWR);
  CHECK(pwrite(fd, "text", 4, 0) == 4 && close(fd) == 0);
  if (is_raw)
    CHECK(syscall(SYS_renameat2, AT_FDCWD, outside.c_str(), AT_FDCWD, inside.c_str(), 0) == 0);
  else
    CHECK(rename(outside.c_str(), inside.c_str()) == 0);
  fd = open(inside.c_str(), O_RDWR);
  watch(fd);
  CHECK(pwrite(fd, "text", 4, 0) == 4 && take(fd).pages.size() == 1);
  CHECK(close(fd) == 0 && unlink(inside.c_str()) == 0);
}

/// A removal that is under way when the daemon begins to note: whoever had the name is gone after
/// it, so the time of then is noted.
void remove_meanwhile(std::string const& dir) {
  std::string const path = dir + "/removed";
  std::atomic<bool> is_over = false;
  std::thread daemon([&] {
    for (std::uint32_t turn = 0; !is_over; ++turn) area->head.unwatched = turn & 1;
  });
  bool is_seen = false;
  for (int i = 0; i < 2000 && !is_seen; ++i) {
    int const fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    struct stat const st = stat_of(fd);
    abi::given_up(*area, "removed") = 0;
    nap_ms(5);  // more than the clock of files goes wrong by
    CHECK(unlink(path.c_str()) == 0 && close(fd) == 0);
    is_seen = abi::given_up(*area, "removed").load() > changed_ns(st);
  }
  is_over = true;
  daemon.join();
  area->head.unwatched = 0;
  CHECK(is_seen);
}

/// What the kernel synced by itself must not be undone by what the daemon read before.
void write_through(std::string const& path) {
  int const fd = open(path.c_str(), O_RDWR | O_CREAT | O_DSYNC, 0600);
  CHECK(fd >= 0);
  CHECK((hold_meanwhile(fd).flags & abi::order_bypass) != 0);
}

}  // namespace

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  area = &map_order_area();
  auto const make = [&](char const* name) {
    int const fd = open((dir + "/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    return fd;
  };

  write_through(dir + "/through");  // first: no place is left from a file with its number
  area->head.unwatched = 1;
  int const first = make("first");
  watch(first);
  change(first);
  CHECK(take(first).is_nothing());
  abi::given_up(*area, "gone") = 0;
  close(make("gone"));
  CHECK(unlink((dir + "/gone").c_str()) == 0 && abi::given_up(*area, "gone").load() == 0);
  CHECK((hold_meanwhile(first).flags & abi::order_whole) != 0);

  // Some are held, but not this one.
  int const second = make("second");
  CHECK(take(second).created != 0);
  change(second);
  CHECK(take(second).is_nothing());
  CHECK((hold_meanwhile(second).flags & abi::order_whole) != 0);
  change(second);
  noted const n = take(second);
  CHECK(!n.pages.empty() && n.cut == 101);
  close(make("gone"));
  CHECK(unlink((dir + "/gone").c_str()) == 0 && abi::given_up(*area, "gone").load() != 0);
  remove_meanwhile(dir);
  give_number_again(dir);
  move_in(dir, false);
  move_in(dir, true);
  return 0;
}
