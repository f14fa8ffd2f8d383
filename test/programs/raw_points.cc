// SPDX-License-Identifier: Apache-2.0
// raw_points DIR [logged]: syscall(2) is no cancellation point, whatever number it is given: a
// thread that is to be cancelled comes back from it. The functions of libc for the same stay
// points. logged: in a durable target, of a file that the log has.
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "order_board.h"

namespace {

int fd;
void* mapped;
struct flock whole = {F_WRLCK, SEEK_SET, 0, 0, 0};
char byte = 'x';
iovec part = {&byte, 1};

using made = long();

constexpr int every_wait = 7;  // of sync_file_range
constexpr int rwf_dsync = 2;

struct one {
  char const* name;
  made* by_number;
  made* by_libc;  // null: it is no point there either
};

#define RAW(...) [] { return syscall(__VA_ARGS__); }
#define LIBC(...) []() -> long { return __VA_ARGS__; }
one const all[] = {
    {"fsync", RAW(SYS_fsync, fd), LIBC(fsync(fd))},
    {"fdatasync", RAW(SYS_fdatasync, fd), LIBC(fdatasync(fd))},
    {"sync_file_range", RAW(SYS_sync_file_range, fd, 0, 0, every_wait),
     LIBC(sync_file_range(fd, 0, 0, every_wait))},
    {"msync", RAW(SYS_msync, mapped, 4096, MS_SYNC), LIBC(msync(mapped, 4096, MS_SYNC))},
    {"lock", RAW(SYS_fcntl, fd, F_SETLKW, &whole), LIBC(fcntl(fd, F_SETLKW, &whole))},
    {"flags", RAW(SYS_fcntl, fd, F_GETFL), nullptr},
    {"syncfs", RAW(SYS_syncfs, fd), nullptr},
    {"write", RAW(SYS_write, fd, &byte, 1), LIBC(write(fd, &byte, 1))},
    {"pwritev2", RAW(SYS_pwritev2, fd, &part, 1, 0, 0, rwf_dsync),
     LIBC(pwritev2(fd, &part, 1, 0, rwf_dsync))},
    {"close", RAW(SYS_close, dup(fd)), LIBC(close(dup(fd)))},
    {"fallocate", RAW(SYS_fallocate, fd, 0, 0, 8192), LIBC(fallocate(fd, 0, 0, 8192))},
};

/// A thread is cancelled before it makes the call. Whether it came back from it.
bool comes_back(made* what) {
  struct state {
    made* what;
    bool is_back;
  } s = {what, false};
  pthread_t thread;
  auto const work = [](void* data) -> void* {
    auto& here = *static_cast<state*>(data);
    pthread_cancel(pthread_self());
    CHECK(here.what() >= 0);
    here.is_back = true;
    return nullptr;
  };
  CHECK(pthread_create(&thread, nullptr, work, &s) == 0);
  void* result = nullptr;
  CHECK(pthread_join(thread, &result) == 0);
  CHECK((result == nullptr) == s.is_back);
  return s.is_back;
}

void expect(bool is_so, char const* name, char const* words) {
  if (!is_so) give_up(__FILE__, __LINE__, (std::string(name) + " " + words).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  fd = make_file(folder(argc, argv) + "/points", 8192);
  int const other = make_file(folder(argc, argv) + "/mapped");
  mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
  CHECK(mapped != MAP_FAILED && close(other) == 0);
  bool const is_logged = argc > 2;
  for (one const& o : all) {
    if (is_logged) raise(map_order_area(), stat_of(fd), sluice::abi::order_logged);
    CHECK(pwrite(fd, "y", 1, 0) == 1);
    expect(comes_back(o.by_number), o.name, "by its number ends a thread");
    CHECK(pwrite(fd, "z", 1, 0) == 1);
    if (o.by_libc != nullptr) expect(!comes_back(o.by_libc), o.name, "of libc ends none");
  }
  return 0;
}
