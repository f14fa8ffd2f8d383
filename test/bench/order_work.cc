// SPDX-License-Identifier: Apache-2.0
// Programs that sync, for order.py: order_work WORK THREADS MS DIR. Each thread has files of its
// own in DIR and works for MS, behind what it prepares. Prints operations per second; of their
// syncs (sqlite: transactions) median, p99 and longest in us; flushes and writes of the disk per
// operation. varmail is the loop of filebench's
// varmail.f, 13 operations: remove a file; make one, append, fsync, close; open, read all, append,
// fsync, close; open, read all, close. Status 77: no libsqlite3.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <latch>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;

constexpr unsigned mail_files = 1000;
constexpr std::size_t block = 4096, blocks = 256;

[[noreturn]] void die(std::string const& what) {
  std::perror(what.c_str());
  std::exit(1);
}

/// What is used of libsqlite3, which is there at run time only.
struct sqlite {
  int (*open)(char const*, void**) = nullptr;
  int (*exec)(void*, char const*, int (*)(void*, int, char**, char**), void*, char**) = nullptr;
  int (*close)(void*) = nullptr;

  bool load() {
    void* const lib = dlopen("libsqlite3.so.0", RTLD_NOW);
    if (lib == nullptr) return false;
    open = reinterpret_cast<decltype(open)>(dlsym(lib, "sqlite3_open"));
    exec = reinterpret_cast<decltype(exec)>(dlsym(lib, "sqlite3_exec"));
    close = reinterpret_cast<decltype(close)>(dlsym(lib, "sqlite3_close"));
    return open != nullptr && exec != nullptr && close != nullptr;
  }
  void run(void* db, std::string const& text) const {
    if (exec(db, text.c_str(), nullptr, nullptr, nullptr) != 0) die("sqlite: " + text);
  }
};
sqlite sql;

struct worker {
  std::string work, dir;
  unsigned number, of;
  std::mt19937_64 rng{number + 1};
  std::vector<char> bytes = std::vector<char>(64 << 10, 'm');
  std::uint64_t operations = 0, at = 0;
  int fd = -1;
  void* db = nullptr;
  std::vector<double> waits_us = {};

  template <class Do>
  void timed(Do const& act) {
    auto const begin = steady::now();
    act();
    waits_us.push_back(std::chrono::duration<double, std::micro>(steady::now() - begin).count());
  }
  void sync(int file) {
    timed([&] {
      if (fsync(file) != 0) die("fsync");
    });
  }
  void put(int file, std::uint64_t offset, std::size_t size) {
    if (pwrite(file, bytes.data(), size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size))
      die("write");
  }
  int open_one(std::string const& path, int flags) const {
    int const file = open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0644);
    if (file < 0) die(path);
    return file;
  }
  void read_all(int file) {
    while (read(file, bytes.data(), bytes.size()) > 0) {
    }
  }
  void append_some(int file) {
    put(file, static_cast<std::uint64_t>(lseek(file, 0, SEEK_END)), 1 + rng() % (32 << 10));
  }
  void varmail() {
    std::string const mail = dir + "/m" + std::to_string(rng() % (mail_files / of) * of + number);
    unlink(mail.c_str());
    int file = open_one(mail, O_CREAT | O_EXCL);
    append_some(file);
    sync(file);
    close(file);
    file = open_one(mail, 0);
    read_all(file);
    append_some(file);
    sync(file);
    close(file);
    file = open_one(mail, 0);
    read_all(file);
    close(file);
    operations += 13;
  }
  void prepare() {
    std::string const own = dir + "/" + std::to_string(number);
    if (work == "varmail") return;
    if (work == "wal" || work == "delete") {
      if (sql.open(own.c_str(), &db) != 0) die(own);
      sql.run(db, "pragma journal_mode=" + work +
                      "; pragma synchronous=full;"
                      " create table t(x)");
      return;
    }
    fd = open_one(own, O_CREAT | O_TRUNC);
    bytes.resize(blocks * block, 'm');
    if (work == "prewritten")
      put(fd, 0, blocks * block);
    else if (work != "append")
      for (unsigned i = 0; i < blocks; ++i) put(fd, i * block, block);
    if (fsync(fd) != 0) die("fsync");
  }
  void once() {
    if (work == "varmail") return varmail();
    ++operations;
    if (db != nullptr)
      return timed([&] { sql.run(db, "insert into t values(hex(randomblob(50)))"); });
    if (work == "append") {
      put(fd, at, block);
      at += block;
      return sync(fd);
    }
    put(fd, rng() % blocks * block, block);
    if (work != "overdata") return sync(fd);
    timed([&] {
      if (fdatasync(fd) != 0) die("fdatasync");
    });
  }
};

struct disk_counts {
  double writes = 0, flushes = 0;
};

/// Of the disk below `dir`, since it is there; nothing where it is none.
disk_counts counts_of(char const* dir) {
  struct stat st = {};
  if (stat(dir, &st) != 0) die(dir);
  std::ifstream in("/sys/dev/block/" + std::to_string(major(st.st_dev)) + ":" +
                   std::to_string(minor(st.st_dev)) + "/stat");
  double field[17] = {};
  for (auto& f : field) in >> f;
  return {field[4], field[15]};
}

double at_share(std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

constexpr char const* works[] = {"append",  "overwrite", "prewritten", "overdata",
                                 "varmail", "wal",       "delete"};

}  // namespace

int main(int argc, char** argv) {
  bool const is_known = argc == 5 && std::any_of(std::begin(works), std::end(works), [&](auto* w) {
                          return std::strcmp(w, argv[1]) == 0;
                        });
  if (!is_known) {
    std::fprintf(stderr, "usage: order_work WORK THREADS MS DIR; works:");
    for (auto const* w : works) std::fprintf(stderr, " %s", w);
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::string const work = argv[1];
  auto const threads = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 0));
  if ((work == "wal" || work == "delete") && !sql.load()) return 77;
  std::vector<worker> all;
  for (unsigned i = 0; i < threads; ++i) all.push_back({work, argv[4], i, threads});
  std::atomic<bool> is_over = false;
  std::latch ready(threads + 1);
  std::vector<std::thread> crew;
  for (auto& w : all)
    crew.emplace_back([&] {
      w.prepare();
      ready.arrive_and_wait();
      while (!is_over) w.once();
    });
  ready.arrive_and_wait();
  disk_counts const before = counts_of(argv[4]);
  auto const begin = steady::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(std::strtoul(argv[3], nullptr, 0)));
  is_over = true;
  for (auto& t : crew) t.join();
  double const seconds = std::chrono::duration<double>(steady::now() - begin).count();
  disk_counts const after = counts_of(argv[4]);
  double sum = 0;
  std::vector<double> waits;
  for (auto& w : all) {
    sum += static_cast<double>(w.operations);
    waits.insert(waits.end(), w.waits_us.begin(), w.waits_us.end());
    if (w.db != nullptr) sql.close(w.db);
  }
  std::sort(waits.begin(), waits.end());
  std::printf("%.1f %.1f %.1f %.1f %.3f %.3f\n", sum / seconds, at_share(waits, 0.5),
              at_share(waits, 0.99), at_share(waits, 1), (after.flushes - before.flushes) / sum,
              (after.writes - before.writes) / sum);
}
