// SPDX-License-Identifier: Apache-2.0
// varmail is the loop of filebench's varmail.f, 13 operations: remove a file; make one, append,
// fsync, close; open, read all, append, fsync, close; open, read all, close.
#include "speed.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../unit/order_guest.h"

namespace sluice::crash {

namespace {

using steady = std::chrono::steady_clock;

constexpr unsigned mail_files = 1000;
constexpr std::size_t block = 4096;

/// `sluice-order serve`, until it goes out of scope: then it has brought everything home.
class server {
 public:
  server(speed_options const& o, std::string const& area, std::string const& log) {
    int ready[2];
    if (pipe(ready) != 0) throw std::runtime_error("pipe");
    std::string const fd = std::to_string(ready[1]);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execl(o.program.c_str(), "sluice-order", "serve", "--area", area.c_str(), "--log",
            log.c_str(), "--log-mib", "64", "--ready-fd", fd.c_str(), nullptr);
      _exit(127);
    }
    close(ready[1]);
    char said = 0;
    bool const is_ready = read(ready[0], &said, 1) == 1;
    close(ready[0]);
    if (!is_ready) throw std::runtime_error("sluice-order does not come up");
  }
  ~server() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  server(server const&) = delete;

 private:
  pid_t pid_;
};

/// One thread's work; counts operations and the time its fsyncs took.
struct worker {
  std::string dir;
  unsigned number, of;
  test::guest* asks;
  std::mt19937_64 rng;
  std::vector<char> bytes = std::vector<char>(64 << 10, 'm');
  std::uint64_t operations = 0;
  std::vector<double> waits_us = {};

  void sync(int fd) {
    auto const begin = steady::now();
    int const failed = asks != nullptr ? asks->sync(fd) : fsync(fd);
    if (failed != 0) throw std::runtime_error("fsync");
    waits_us.push_back(std::chrono::duration<double, std::micro>(steady::now() - begin).count());
  }
  void put(int fd, std::uint64_t at, std::size_t size) {
    if (pwrite(fd, bytes.data(), size, static_cast<off_t>(at)) != static_cast<ssize_t>(size))
      throw std::runtime_error("write");
    if (asks != nullptr) asks->wrote(fd, at, at + size);
  }
  void append(int fd) {
    put(fd, static_cast<std::uint64_t>(lseek(fd, 0, SEEK_END)), 1 + rng() % (32 << 10));
  }
  int open_one(std::string const& path, int flags) {
    int const fd = open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0644);
    if (fd < 0) throw std::runtime_error("open " + path);
    return fd;
  }
  std::string mail() {
    return dir + "/m" + std::to_string(rng() % (mail_files / of) * of + number);
  }
  void read_all(int fd) {
    while (read(fd, bytes.data(), bytes.size()) > 0) {
    }
  }
  /// Removed and made again is what keeps their number.
  void varmail() {
    std::string const made = mail();
    unlink(made.c_str());
    int fd = open_one(made, O_CREAT | O_EXCL);
    if (asks != nullptr) asks->created(fd);
    append(fd);
    sync(fd);
    close(fd);
    fd = open_one(made, 0);
    read_all(fd);
    append(fd);
    sync(fd);
    close(fd);
    fd = open_one(made, 0);
    read_all(fd);
    close(fd);
    operations += 13;
  }
  void append_loop(int fd, std::uint64_t& at) {
    put(fd, at, block);
    at += block;
    sync(fd);
    ++operations;
  }
  void overwrite(int fd) {
    put(fd, rng() % 256 * block, block);
    sync(fd);
    ++operations;
  }
  void run(std::string const& work, std::atomic<bool> const& is_over) {
    int fd = -1;
    std::uint64_t at = 0;
    if (work != "varmail") {
      std::string const own = dir + "/" + work + std::to_string(number);
      fd = open_one(own, O_CREAT | O_TRUNC);
      if (asks != nullptr) asks->created(fd);
      if (asks != nullptr) asks->cut(fd, 0);
      if (work == "overwrite")
        for (unsigned i = 0; i < 256; ++i) put(fd, i * block, block);
      fsync(fd);
    }
    while (!is_over)
      work == "varmail" ? varmail() : work == "append" ? append_loop(fd, at) : overwrite(fd);
    if (fd >= 0) close(fd);
  }
};

struct result {
  double per_second, wait_us;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

result once(speed_options const& o, std::string const& work, unsigned threads, bool is_served) {
  std::string const area = o.beside + "/order";
  // Each begins with an empty directory that is on the disk.
  std::string const clear = "rm -f " + o.dir + "/[mao]* && sync -f " + o.dir;
  if (std::system(clear.c_str()) != 0) throw std::runtime_error("rm");
  unlink(area.c_str());
  std::optional<test::guest> asks;
  std::optional<server> daemon;
  if (is_served) {
    asks.emplace(area, true);
    daemon.emplace(o, area, o.dir + "/log");
  }
  std::vector<worker> all;
  for (unsigned i = 0; i < threads; ++i)
    all.push_back({o.dir, i, threads, asks ? &*asks : nullptr, std::mt19937_64(i + 1)});
  std::atomic<bool> is_over = false, is_broken = false;
  std::vector<std::thread> crew;
  auto const begin = steady::now();
  for (auto& w : all)
    crew.emplace_back([&] {
      try {
        w.run(work, is_over);
      } catch (std::exception const& e) {
        std::fprintf(stderr, "%s: %s\n", work.c_str(), e.what());
        is_broken = true;
      }
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(o.milliseconds));
  is_over = true;
  for (auto& t : crew) t.join();
  double const seconds = std::chrono::duration<double>(steady::now() - begin).count();
  if (is_broken) throw std::runtime_error("the work failed");
  result sum = {};
  std::vector<double> waits;
  for (auto const& w : all) {
    sum.per_second += static_cast<double>(w.operations) / seconds;
    waits.insert(waits.end(), w.waits_us.begin(), w.waits_us.end());
  }
  sum.wait_us = median(std::move(waits));
  if (asks && asks->alone != 0) std::printf("  %u went alone\n", asks->alone.load());
  return sum;
}

}  // namespace

void measure(speed_options const& o, unsigned flush_us) {
  std::printf("\nflush %u us: operations/s and median fsync, %u rounds in turns, medians\n",
              flush_us, o.rounds);
  std::printf("%-10s %7s %10s %10s %7s %10s %10s %7s\n", "work", "threads", "fsync/s", "log/s",
              "ratio", "fsync us", "log us", "ratio");
  for (char const* work : {"varmail", "append", "overwrite"})
    for (unsigned threads : {1u, 16u, 40u}) {
      std::vector<double> rates[2], waits[2];
      for (unsigned round = 0; round < o.rounds; ++round)
        for (bool served : {false, true}) {
          result const r = once(o, work, threads, served);
          rates[served].push_back(r.per_second);
          waits[served].push_back(r.wait_us);
        }
      double const a = median(rates[0]), b = median(rates[1]);
      double const x = median(waits[0]), y = median(waits[1]);
      std::printf("%-10s %7u %10.0f %10.0f %6.2fx %10.0f %10.0f %6.2fx\n", work, threads, a, b,
                  b / a, x, y, y / x);
      std::fflush(stdout);
    }
}

}  // namespace sluice::crash
