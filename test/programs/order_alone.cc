// SPDX-License-Identifier: Apache-2.0
// A closed file is nobody's: not locked, not leased and not open for writing, while other threads
// wait for the disk. And a program that has a lease on a file keeps it. order_alone DIR, or
// order_alone DIR FD: of a descriptor with a lease that was taken by who started us.
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr unsigned lock_rounds = 200, start_rounds = 40, lease_rounds = 100;
std::atomic<int> broken{0};

void write_and_sync(int fd, std::string const& bytes) {
  CHECK(pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  CHECK(fsync(fd) == 0);
}

/// Threads that have barriers all the time.
class crowd {
 public:
  explicit crowd(std::string const& dir) {
    for (int t = 0; t < 4; ++t)
      threads_.emplace_back([this, path = dir + "/crowd" + std::to_string(t)] {
        int const fd = make_file(path);
        while (!is_over_) write_and_sync(fd, std::string(5000, 'c'));
        close(fd);
      });
  }
  ~crowd() {
    is_over_ = true;
    for (auto& t : threads_) t.join();
  }

 private:
  std::atomic<bool> is_over_{false};
  std::vector<std::thread> threads_;
};

int opened(std::string const& path, int flags = O_RDWR, mode_t mode = 0600) {
  int const fd = open(path.c_str(), flags | O_CLOEXEC, mode);
  CHECK(fd >= 0);
  return fd;
}

void lock(std::string const& path) {
  int const fd = opened(path);
  CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0);
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  CHECK(fcntl(fd, F_OFD_SETLK, &whole) == 0);
  write_and_sync(fd, std::string(5000, 'l'));
  close(fd);
}

void lease(std::string const& path) {
  int const fd = opened(path);
  CHECK(fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
  close(fd);
}

void keep_lease(int fd) {
  for (unsigned i = 0; i < lease_rounds; ++i) {
    write_and_sync(fd, std::to_string(i));
    CHECK(fcntl(fd, F_GETLEASE) == F_WRLCK);
  }
}

void start(std::string const& path, std::string const& program) {
  unlink(path.c_str());
  int const fd = opened(path, O_RDWR | O_CREAT | O_EXCL, 0700);
  write_and_sync(fd, program);
  close(fd);
  char* const args[] = {const_cast<char*>(path.c_str()), nullptr};
  pid_t pid = 0;
  int status = 0;
  CHECK((errno = posix_spawn(&pid, path.c_str(), nullptr, nullptr, args, environ)) == 0);
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

std::string bytes_of(char const* path) {
  int const fd = opened(path, O_RDONLY);
  std::string bytes(1 << 22, 0);
  ssize_t const n = read(fd, bytes.data(), bytes.size());
  CHECK(n > 0);
  close(fd);
  return bytes.substr(0, static_cast<std::size_t>(n));
}

}  // namespace

int main(int argc, char** argv) {
  std::string const dir = folder(argc, argv);
  signal(SIGIO, [](int) { ++broken; });
  {
    crowd const others(dir);
    if (argc > 2) keep_lease(atoi(argv[2]));
    for (unsigned i = 0; argc == 2 && i < lock_rounds; ++i) {
      if (i == 0) close(make_file(dir + "/locked"));
      lock(dir + "/locked");
      if (i % 3 == 0) lease(dir + "/locked");
    }
    std::string const program = argc == 2 ? bytes_of("/bin/true") : "";
    for (unsigned i = 0; argc == 2 && i < start_rounds; ++i) start(dir + "/program", program);
  }
  if (argc == 2) {
    int const fd = make_file(dir + "/leased");
    CHECK(fsync(fd) == 0);
    CHECK(syscall(SYS_fcntl, fd, F_SETLEASE, F_WRLCK) == 0);
    keep_lease(fd);
  }
  CHECK(broken == 0);
}
