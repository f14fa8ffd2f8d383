// SPDX-License-Identifier: Apache-2.0
// The five kinds of streams: overwrite blocks of a file that is there; append;
// a new file per epoch, with an old one removed; one file replaced atomically
// by rename; one block rewritten, its mode changed now and then.
#include "streams.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include "../daemon/journal/order_guest.h"
#include "../daemon/journal/roomy_writer.h"
#include "journal/boot.h"
#include "journal/file_disk.h"
#include "journal/home.h"
#include "journal/recover.h"
#include "journal/slots.h"

namespace sluice::crash {

namespace {

using namespace journal;

constexpr std::uint64_t log_size = 512 << 10;  // some laps in a run
constexpr unsigned served_first = 16;

[[noreturn]] void fail(std::string const& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

struct file {
  int fd;
  explicit file(std::string const& path, int flags = O_RDWR)
      : fd(open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd < 0) fail(path);
  }
  ~file() { close(fd); }
  file(file const&) = delete;
  file_id id() const {
    file_id known;
    if (int const error = identify(fd, known); error != 0) throw std::runtime_error("identify");
    return known;
  }
  std::uint64_t changed_ns() const {
    struct stat st = {};
    fstat(fd, &st);
    return static_cast<std::uint64_t>(st.st_ctim.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(st.st_ctim.tv_nsec);
  }
};

std::string last_part(std::string const& path) { return path.substr(path.rfind('/') + 1); }

std::uint64_t now_ns(clockid_t clock) {
  timespec t = {};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

/// One stream: home first, then the log, then the mark.
class stream {
 public:
  stream(std::string dir, mode const& m, unsigned number, test::roomy_writer* log,
         test::guest* asks, recorder* marks, std::uint64_t seed)
      : dir_(std::move(dir)),
        mode_(m),
        number_(number),
        log_(log),
        asks_(asks),
        marks_(marks),
        rng_(seed),
        directory_(dir_, O_RDONLY | O_DIRECTORY) {
    if (mode_.is_ordered && asks_ != nullptr) order_.emplace(*asks_, dir_ + "/log", directory_.fd);
  }

  void write(std::uint64_t epoch) {
    switch (way_of(number_)) {
      case kind_of::overwrite:
      case kind_of::append:
        put(stream_file(dir_, number_), epoch, epoch * block, 0);
        break;
      case kind_of::files:
        put(epoch_file(dir_, number_, epoch), epoch, 0, O_CREAT | O_EXCL);
        break;
      case kind_of::replace:
        put(stream_file(dir_, number_) + ".tmp", epoch, 0, O_CREAT | O_EXCL);
        replace();
        break;
      case kind_of::rewrite:
        put(stream_file(dir_, number_), epoch, 0, 0);
        break;
    }
    if (way_of(number_) == kind_of::files && epoch >= kept_files) remove(epoch - kept_files);
    if (is_late() && epoch % 4 != 3) return;
    if (order_) must(order_->pass());
    open_.clear();
    if (marks_ != nullptr) marks_->mark(number_, epoch);
  }
  unsigned barriers() const { return order_ ? order_->count() : 0; }

 private:
  static void must(int error) {
    if (error != 0) throw std::runtime_error(std::string("barrier: ") + std::strerror(error));
  }
  /// Barriers, of its own or of a stage.
  bool is_late() const { return order_ || marks_ == nullptr; }
  /// Before home is changed.
  void change() {
    if (!order_ || !mode_.gates) return;
    must(order_->pass());
    open_.clear();
  }
  record about(kind what, file const& f, std::uint64_t epoch) const {
    record r;
    r.what = what;
    r.stream = number_;
    r.epoch = epoch;
    r.file = f.id();
    r.mode = S_IFREG | 0644;
    r.uid = r.gid = mode_.user;
    return r;
  }
  void tell(record const& r) {
    if (log_ != nullptr && log_->append(r, lsn_) != 0) throw std::runtime_error("append");
  }
  /// fsync of a file, or of the directory.
  void durable(int fd, bool is_directory = false) {
    auto const kind = is_directory ? abi::order_request::directory : abi::order_request::fsync;
    if (order_) {
      must(order_->barrier(fd, kind));
    } else if (asks_ != nullptr) {
      if (asks_->sync(fd, kind) != 0) throw std::runtime_error("sync");
      usleep(static_cast<useconds_t>(rng_() % 3000));
    } else if (mode_.logged && mode_.waits) {
      if (log_->commit(lsn_) != 0) throw std::runtime_error("commit");
      if (log_->wants_checkpoint() && log_->checkpoint() != 0) throw std::runtime_error("trim");
    } else if (mode_.waits && fsync(fd) != 0) {
      fail("fsync");
    }
    // Other load makes the kernel write back what it likes.
    if (rng_() % 3 == 0) sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
  void put(std::string const& path, std::uint64_t epoch, std::uint64_t offset, int flags) {
    change();
    auto owner = std::make_unique<file>(path, O_RDWR | flags);
    file& f = *owner;
    if (flags != 0 && asks_ != nullptr) asks_->created(f.fd);
    if (flags != 0) {
      record made = about(kind::create, f, epoch);
      made.directory = directory_.id();
      made.name = last_part(path);
      tell(made);
    }
    auto const bytes = content(number_, epoch);
    if (pwrite(f.fd, bytes.data(), block, static_cast<off_t>(offset)) != block) fail(path);
    record data = about(kind::data, f, epoch);
    data.changed_ns = f.changed_ns();
    data.offset = offset;
    data.bytes = bytes;
    tell(data);
    if (flags != 0) {
      record size = about(kind::truncate, f, epoch);
      size.changed_ns = data.changed_ns;
      size.offset = offset + block;
      tell(size);
    }
    if (asks_ != nullptr) asks_->wrote(f.fd, offset, offset + block);
    bool const other_mode = way_of(number_) == kind_of::rewrite && epoch % 3 == 2;
    if (other_mode && fchmod(f.fd, epoch % 2 == 0 ? 0644 : 0640) != 0) fail(path);
    durable(f.fd);
    // The newest block alone may be the first that goes home.
    if (is_late()) sync_file_range(f.fd, static_cast<off_t>(offset), block, SYNC_FILE_RANGE_WRITE);
    // A name given by sluice is durable with the file.
    if (flags != 0 && !mode_.logged && asks_ == nullptr) durable(directory_.fd, true);
    if (is_late() && rng_() % 2 == 0) return open_.push_back(std::move(owner));
    if (order_) must(order_->before_close(f.fd));
  }
  void remove(std::uint64_t epoch) {
    std::string const path = epoch_file(dir_, number_, epoch);
    file const f(path, O_RDONLY);
    change();
    if (unlink(path.c_str()) != 0) fail(path);
    record gone = about(kind::unlink, f, epoch);
    gone.directory = directory_.id();
    gone.name = last_part(path);
    tell(gone);
    durable(directory_.fd, true);
  }
  void replace() {
    std::string const to = stream_file(dir_, number_), from = to + ".tmp";
    file const victim(to, O_RDONLY);
    change();
    if (rename(from.c_str(), to.c_str()) != 0) fail(to);
    // The journal has no renames: home has them, and the name that the victim began with is free.
    record gone = about(kind::unlink, victim, 0);
    gone.directory = directory_.id();
    gone.name = last_part(from);
    tell(gone);
    durable(directory_.fd, true);
    if (mode_.logged && mode_.waits && fsync(directory_.fd) != 0) fail("fsync");
  }

  std::string dir_;
  mode const& mode_;
  unsigned number_;
  test::roomy_writer* log_;
  test::guest* asks_;
  recorder* marks_;  // null: nobody is told
  std::mt19937_64 rng_;
  file directory_;
  std::optional<test::order_stream> order_;
  std::vector<std::unique_ptr<file>> open_;  // until all is durable
  std::uint64_t lsn_ = 0;
};

/// A process that serves the area. The rules of the mode are its own, so it is ours and not the
/// installed one; but for its command line it is the same.
class daemon {
 public:
  daemon(std::string area, std::string log, mode const& m)
      : area_(std::move(area)), log_(std::move(log)), mode_(m) {
    begin();
  }
  ~daemon() { end(SIGKILL); }
  daemon(daemon const&) = delete;

  void disturb(std::uint64_t seed) {
    usleep(static_cast<useconds_t>(10'000 + (seed + ++turns_) * 7919 % 40'000));
    if (mode_.daemon == fate::is_killed) {
      end(SIGKILL);
      if (turns_ % 3 == 0) usleep(400'000);  // nobody is there for a while
      begin();
    } else if (mode_.daemon == fate::is_stopped) {
      kill(pid_, SIGSTOP);
      usleep(350'000);
      kill(pid_, SIGCONT);
    }
  }

 private:
  void end(int signal) {
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
  }
  void begin() {
    int ready[2];
    if (pipe(ready) != 0) fail("pipe");
    pid_ = fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        serve(ready[1]);
      } catch (std::exception const& e) {
        std::fprintf(stderr, "daemon: %s\n", e.what());
      }
      _exit(1);
    }
    close(ready[1]);
    char said = 0;
    bool const is_ready = read(ready[0], &said, 1) == 1;
    close(ready[0]);
    if (!is_ready) throw std::runtime_error("the daemon does not come up");
  }
  [[noreturn]] void serve(int ready) {
    recover_options before;
    before.log = log_;
    recover(before);
    file_disk disk(log_, file_disk::use::write);
    service_rules keep = mode_.keep;
    keep.learns_directories = false;  // some streams sync theirs behind each new file
    for (bool is_first = true;; is_first = false) {
      superblock s = read_slots(disk).in_force;
      auto const boot = boot_id();
      if (continue_log(disk, s, s.head, random_salt(), {}, boot) != 0) fail("log");
      service all(disk, s, keep);
      all.add(std::make_unique<journal::area>(area_));
      if (is_first && ::write(ready, "1", 1) != 1) fail("pipe");
      while (!all.wants_anew()) {
        all.turn();
        if (mode_.is_ordered) usleep(3000);  // much is outstanding then
      }
      while (!all.end()) all.turn();
    }
  }

  std::string area_, log_;
  mode const& mode_;
  pid_t pid_ = -1;
  unsigned turns_ = 0;
};

}  // namespace

void prepare(std::string const& dir, mode const& m, run_size size) {
  for (unsigned s = 0; s < size.streams; ++s) {
    if (way_of(s) == kind_of::files) continue;
    file const f(stream_file(dir, s), O_RDWR | O_CREAT);
    std::vector<char> const zeros(way_of(s) == kind_of::overwrite ? size.epochs * block : 0);
    if (pwrite(f.fd, zeros.data(), zeros.size(), 0) < 0) fail("prepare");
  }
  if (m.has_log())
    make_log_file(dir + "/log", log_size, m.logged ? 3'600'000'000'000 : 10'000'000'000);
  file const all(dir, O_RDONLY | O_DIRECTORY);
  if (syncfs(all.fd) != 0) fail("syncfs");
}

/// This program again, with a stage in it.
void run_staged(std::string const& dir, std::string const& beside, run_size size,
                std::uint64_t seed) {
  char const* const build = std::getenv("BUILD");
  std::string const sluice = std::string(build != nullptr ? build : "build") + "/bin/sluice",
                    order = "ordered@" + dir, log = dir + "/log", run = beside + "/run",
                    report = beside + "/report.json", streams = std::to_string(size.streams),
                    epochs = std::to_string(size.epochs), from = std::to_string(seed),
                    self = std::filesystem::read_symlink("/proc/self/exe").string();
  char const* const argv[] = {sluice.c_str(),
                              "--run-dir",
                              run.c_str(),
                              "run",
                              "--order",
                              order.c_str(),
                              "--order-journal",
                              log.c_str(),
                              "--no-summary",
                              "--report",
                              report.c_str(),
                              "--",
                              self.c_str(),
                              "streams",
                              dir.c_str(),
                              streams.c_str(),
                              epochs.c_str(),
                              from.c_str(),
                              nullptr};
  pid_t const pid = fork();
  if (pid == 0) {
    execv(argv[0], const_cast<char* const*>(argv));
    _exit(127);
  }
  int status = 1;
  waitpid(pid, &status, 0);
  if (status != 0) throw std::runtime_error("the staged workload failed");
}

void write_all(std::string const& dir, std::string const& beside, mode const& m, run_size size,
               recorder& marks, std::uint64_t seed) {
  if (m.is_staged) return run_staged(dir, beside, size, seed);
  std::optional<test::guest> asks;
  std::optional<daemon> server;
  if (m.is_served()) {
    unlink((beside + "/order").c_str());
    asks.emplace(beside + "/order", true);
    asks->marks = m.marks;
    if (m.syncs) asks->void_log = dir + "/log";
    server.emplace(beside + "/order", dir + "/log", m);
  }
  std::optional<file_disk> disk;
  std::optional<test::roomy_writer> log;
  file const directory(dir, O_RDONLY | O_DIRECTORY);
  if (m.logged) {
    disk.emplace(dir + "/log", file_disk::use::write);
    rules keep;
    keep.flush_before_ack = m.flushes;
    log.emplace(
        *disk, read_slots(*disk).in_force,
        surroundings{[] { return now_ns(CLOCK_REALTIME); }, [] { return now_ns(CLOCK_MONOTONIC); }},
        [&] { return syncfs(directory.fd) == 0 ? 0 : errno; }, keep);
  }
  std::atomic<unsigned> running = size.streams, broken = 0, barriers = 0;
  std::vector<std::thread> crew;
  for (unsigned s = 0; s < size.streams; ++s)
    crew.emplace_back([&, s] {
      try {
        stream one(dir, m, s, log ? &*log : nullptr, asks ? &*asks : nullptr, &marks, seed + s);
        for (std::uint64_t e = 0; e < size.epochs; ++e) one.write(e);
        barriers += one.barriers();
      } catch (std::exception const& e) {
        std::fprintf(stderr, "stream %u: %s\n", s, e.what());
        ++broken;
      }
      --running;
    });
  // Where nobody waits for the log, somebody has to write it.
  while (m.logged && !m.waits && running != 0) {
    usleep(2000);
    log->commit(log->tail());
  }
  // A daemon that is disturbed before it has served anybody has nothing to lose.
  while (server && running != 0 && asks->answered < served_first) usleep(1000);
  while (server && running != 0) server->disturb(seed);
  for (auto& t : crew) t.join();
  if (asks)
    std::printf("%s: %u answered, %u sent back, %u alone\n", m.name, asks->answered.load(),
                asks->sent_back.load(), asks->alone.load());
  if (m.is_ordered) std::printf("%s: %u barriers\n", m.name, barriers.load());
  if (broken != 0) throw std::runtime_error("the workload failed");
}

int run_streams(std::string const& dir, run_size size, std::uint64_t seed) {
  for (unsigned s = 0; s < size.streams; ++s)
    if (fork() == 0) {
      int status = 1;
      try {
        stream one(dir, modes[1], s, nullptr, nullptr, nullptr, seed + s);
        for (std::uint64_t e = 0; e < size.epochs; ++e) one.write(e);
        status = 0;
      } catch (std::exception const& e) {
        std::fprintf(stderr, "stream %u: %s\n", s, e.what());
      }
      _exit(status);
    }
  int broken = 0, status = 0;
  while (wait(&status) > 0) broken += status != 0;
  return broken == 0 ? 0 : 1;
}

}  // namespace sluice::crash
