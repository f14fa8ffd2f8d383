// SPDX-License-Identifier: Apache-2.0
// The five kinds of streams: overwrite blocks of a file that is there; append;
// a new file per epoch, with an old one removed; one file replaced atomically
// by rename; one block rewritten, its mode changed now and then.
#include "workload.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include "../unit/order_guest.h"
#include "order/boot.h"
#include "order/file_disk.h"
#include "order/home.h"
#include "order/recover.h"
#include "order/slots.h"
#include "order/writer.h"

namespace sluice::crash {

namespace {

using namespace order;

constexpr std::size_t block = 4096;
constexpr unsigned kept_files = 4;             // of a stream that makes and removes
constexpr std::uint64_t log_size = 512 << 10;  // some laps in a run

enum class kind_of { overwrite, append, files, replace, rewrite };
kind_of way_of(unsigned stream) { return static_cast<kind_of>(stream % 5); }

/// A block that says whose it is, and that it is whole.
std::vector<std::byte> content(unsigned stream, std::uint64_t epoch) {
  std::vector<std::byte> bytes(block);
  std::mt19937_64 fill(stream * 1'000'003 + epoch);
  for (std::size_t at = 0; at < block; at += 8) {
    std::uint64_t const word = fill();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  return bytes;
}

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

std::string stream_file(std::string const& dir, unsigned stream) {
  return dir + "/stream-" + std::to_string(stream);
}
std::string epoch_file(std::string const& dir, unsigned stream, std::uint64_t epoch) {
  return stream_file(dir, stream) + "-" + std::to_string(epoch);
}
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
  stream(std::string dir, mode const& m, unsigned number, writer* log, test::guest* asks,
         recorder& marks, std::uint64_t seed)
      : dir_(std::move(dir)),
        mode_(m),
        number_(number),
        log_(log),
        asks_(asks),
        marks_(marks),
        rng_(seed),
        directory_(dir_, O_RDONLY | O_DIRECTORY) {}

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
    marks_.mark(number_, epoch);
  }

 private:
  record about(kind what, file const& f, std::uint64_t epoch) const {
    record r;
    r.what = what;
    r.stream = number_;
    r.epoch = epoch;
    r.file = f.id();
    r.mode = S_IFREG | 0644;
    return r;
  }
  void tell(record const& r) {
    if (log_ != nullptr && log_->append(r, lsn_) != 0) throw std::runtime_error("append");
  }
  /// fsync of a file, or of the directory.
  void durable(int fd, bool is_directory = false) {
    auto const kind = is_directory ? abi::order_request::directory : abi::order_request::fsync;
    if (asks_ != nullptr) {
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
    file f(path, O_RDWR | flags);
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
    if (asks_ != nullptr) asks_->wrote(f.fd, offset, offset + block);
    bool const other_mode = way_of(number_) == kind_of::rewrite && epoch % 3 == 2;
    if (other_mode && fchmod(f.fd, epoch % 2 == 0 ? 0644 : 0640) != 0) fail(path);
    durable(f.fd);
    // A name given by sluice is durable with the file.
    if (flags != 0 && !mode_.logged && asks_ == nullptr) durable(directory_.fd, true);
  }
  void remove(std::uint64_t epoch) {
    std::string const path = epoch_file(dir_, number_, epoch);
    file const f(path, O_RDONLY);
    if (unlink(path.c_str()) != 0) fail(path);
    record gone = about(kind::unlink, f, epoch);
    gone.directory = directory_.id();
    gone.name = last_part(path);
    tell(gone);
    durable(directory_.fd, true);
  }
  void replace() {
    std::string const to = stream_file(dir_, number_), from = to + ".tmp";
    file const f(from, O_RDONLY), victim(to, O_RDONLY);
    if (rename(from.c_str(), to.c_str()) != 0) fail(to);
    record moved = about(kind::rename, f, 0);
    moved.directory = moved.new_directory = directory_.id();
    moved.name = last_part(from);
    moved.new_name = last_part(to);
    moved.victim = victim.id();
    tell(moved);
    durable(directory_.fd, true);
  }

  std::string dir_;
  mode const& mode_;
  unsigned number_;
  writer* log_;
  test::guest* asks_;
  recorder& marks_;
  std::mt19937_64 rng_;
  file directory_;
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
      all.add(std::make_unique<order::area>(area_));
      if (is_first && ::write(ready, "1", 1) != 1) fail("pipe");
      while (!all.wants_anew()) all.turn();
      while (!all.end()) all.turn();
    }
  }

  std::string area_, log_;
  mode const& mode_;
  pid_t pid_ = -1;
  unsigned turns_ = 0;
};

std::optional<std::vector<std::byte>> read_block(std::string const& path, std::uint64_t offset) {
  int const fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::vector<std::byte> bytes(block);
  bool const whole = pread(fd, bytes.data(), block, static_cast<off_t>(offset)) == block;
  close(fd);
  if (!whole) return {};
  return bytes;
}

bool is_there(std::string const& dir, unsigned s, std::uint64_t epoch) {
  bool const own = way_of(s) == kind_of::files;
  auto const found = own ? read_block(epoch_file(dir, s, epoch), 0)
                         : read_block(stream_file(dir, s), epoch * block);
  return found && *found == content(s, epoch);
}

}  // namespace

void prepare(std::string const& dir, mode const& m, run_size size) {
  for (unsigned s = 0; s < size.streams; ++s) {
    if (way_of(s) == kind_of::files) continue;
    file const f(stream_file(dir, s), O_RDWR | O_CREAT);
    std::vector<char> const zeros(way_of(s) == kind_of::overwrite ? size.epochs * block : 0);
    if (pwrite(f.fd, zeros.data(), zeros.size(), 0) < 0) fail("prepare");
  }
  if (m.logged || m.is_served())
    make_log_file(dir + "/log", log_size, m.is_served() ? 10'000'000'000 : 3'600'000'000'000);
  sync();
}

void write_all(std::string const& dir, std::string const& beside, mode const& m, run_size size,
               recorder& marks, std::uint64_t seed) {
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
  std::optional<writer> log;
  file const directory(dir, O_RDONLY | O_DIRECTORY);
  if (m.logged) {
    disk.emplace(dir + "/log", file_disk::use::write);
    rules keep;
    keep.flush_before_ack = m.flushes;
    log.emplace(
        *disk, read_slots(*disk).in_force,
        surroundings{[&] { return syncfs(directory.fd) == 0 ? 0 : errno; },
                     [] { return now_ns(CLOCK_REALTIME); }, [] { return now_ns(CLOCK_MONOTONIC); }},
        keep);
  }
  std::atomic<unsigned> running = size.streams, broken = 0;
  std::vector<std::thread> crew;
  for (unsigned s = 0; s < size.streams; ++s)
    crew.emplace_back([&, s] {
      try {
        stream one(dir, m, s, log ? &*log : nullptr, asks ? &*asks : nullptr, marks, seed + s);
        for (std::uint64_t e = 0; e < size.epochs; ++e) one.write(e);
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
  while (server && running != 0) server->disturb(seed);
  for (auto& t : crew) t.join();
  if (asks)
    std::printf("%s: %u answered, %u sent back, %u alone\n", m.name, asks->answered.load(),
                asks->sent_back.load(), asks->alone.load());
  if (broken != 0) throw std::runtime_error("the workload failed");
}

/// The oldest epoch of which a sector of the block is: one that is written in place when the power
/// fails may be of two epochs, with fsync as well. Nothing when a sector is of none.
std::optional<std::uint64_t> oldest_in(std::vector<std::byte> const& found, unsigned stream,
                                       std::uint64_t epochs) {
  constexpr std::size_t sector = 512;
  std::optional<std::uint64_t> oldest;
  for (std::size_t at = 0; at < found.size(); at += sector) {
    std::uint64_t e = epochs;
    while (e-- > 0) {
      auto const one = content(stream, e);
      if (std::memcmp(one.data() + at, found.data() + at, sector) == 0) break;
    }
    if (e >= epochs) return {};
    oldest = oldest ? std::min(*oldest, e) : e;
  }
  return oldest;
}

picture look(std::string const& dir, run_size size) {
  picture p(size.streams, std::vector<bool>(size.epochs));
  for (unsigned s = 0; s < size.streams; ++s) {
    if (way_of(s) != kind_of::replace && way_of(s) != kind_of::rewrite) {
      for (std::uint64_t e = 0; e < size.epochs; ++e) p[s][e] = is_there(dir, s, e);
      continue;
    }
    auto const found = read_block(stream_file(dir, s), 0);
    auto const newest = found ? oldest_in(*found, s, size.epochs) : std::nullopt;
    for (std::uint64_t e = 0; newest && e <= *newest; ++e) p[s][e] = true;
  }
  return p;
}

offences judge(picture const& p, mode const& m, std::vector<std::uint64_t> const& acknowledged) {
  offences found;
  for (unsigned s = 0; s < p.size(); ++s) {
    std::uint64_t const acked = acknowledged[s], all = p[s].size();
    // A stream that removes its old files has a window; what was removed for
    // good must stay so.
    std::uint64_t first = 0;
    if (way_of(s) == kind_of::files) {
      for (std::uint64_t e = 0; e + kept_files < acked; ++e) found.lost += p[s][e];
      while (first < all && !p[s][first]) ++first;
      if (first > acked) first = acked;
      if (acked > kept_files) first = std::max(first, acked - kept_files);
    }
    bool gap = false;
    for (std::uint64_t e = first; e < all; ++e) {
      bool const removing = way_of(s) == kind_of::files && e + kept_files <= acked;
      if (!p[s][e] && !removing) {
        gap = true;
        found.lost += m.acknowledges && e < acked;
        if (m.acknowledges && e < acked && found.first.empty())
          found.first = "stream " + std::to_string(s) + " lost epoch " + std::to_string(e) +
                        " of " + std::to_string(acked);
      } else if (p[s][e] && gap) {
        ++found.order;
      }
    }
  }
  return found;
}

}  // namespace sluice::crash
