// SPDX-License-Identifier: Apache-2.0
// A program of a durable target, as the stage makes it: it notes what it wrote in the area and asks
// for its fsyncs. Slower and simpler than the stage, by the same rules (abi/README.md).
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "abi/order_area.h"

namespace sluice::test {

inline abi::order_area* map_area(std::string const& path, bool is_new) {
  int const fd = open(path.c_str(), O_RDWR | O_CLOEXEC | (is_new ? O_CREAT | O_EXCL : 0), 0600);
  if (fd < 0 || (is_new && ftruncate(fd, sizeof(abi::order_area)) != 0))
    throw std::runtime_error("no area");
  void* const at =
      mmap(nullptr, sizeof(abi::order_area), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) throw std::runtime_error("no area");
  auto* const a = static_cast<abi::order_area*>(at);
  if (is_new) {
    a->head.layout = abi::order_layout_version;
    a->head.total_bytes = sizeof *a;
    a->head.set_bytes = sizeof(abi::order_set);
    a->head.slot_bytes = sizeof(abi::order_slot);
    a->head.magic_word = abi::order_magic;
  }
  return a;
}

class guest {
 public:
  guest(std::string const& path, bool makes) : area_(map_area(path, makes)) {}
  ~guest() { munmap(area_, sizeof *area_); }
  guest(guest const&) = delete;

  abi::order_area& area() const { return *area_; }
  std::atomic<unsigned> answered = 0, sent_back = 0, alone = 0;
  /// A daemon that is silent for so long is none.
  std::atomic<std::uint64_t> silence_ns = abi::order_silence_ns;
  bool marks = true;
  std::string void_log;  // set: who goes alone syncs everything, and marks that log

  void created(int fd) const {
    struct statx x = {};
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_INO, &x) != 0) return;
    note(fd, [&](abi::order_inode& i) { i.created.store(birth_of(x)); });
  }
  void wrote(int fd, std::uint64_t from, std::uint64_t to) const {
    note(fd, [&](abi::order_inode& i) {
      if (!core::add(i.written, core::pages_of(from, to))) i.state.fetch_or(abi::order_whole);
    });
  }
  void cut(int fd, std::uint64_t size) const {
    note(fd, [&](abi::order_inode& i) {
      std::uint64_t seen = i.cut.load();
      while ((seen == 0 || seen > size + 1) && !i.cut.compare_exchange_weak(seen, size + 1)) {
      }
    });
  }
  void gave_up(std::string const& name, struct stat const& st) const {
    abi::given_up(*area_, name) = static_cast<std::uint64_t>(st.st_ctim.tv_sec) * 1'000'000'000 +
                                  static_cast<std::uint64_t>(st.st_ctim.tv_nsec);
  }
  void raise(int fd, std::uint64_t flag) const {
    note(fd, [&](abi::order_inode& i) { i.state.fetch_or(flag); });
  }

  /// 0 or an errno, as fsync.
  int sync(int fd, abi::order_request kind = abi::order_request::fsync) {
    int const said = ask(fd, kind);
    if (said >= 0) {
      ++answered;
      return said;
    }
    if (said == abi::go_native) {
      ++sent_back;
      if ((state(fd) & abi::order_logged) == 0) return real(fd);
    } else {
      ++alone;
    }
    return go_alone(fd);
  }

  /// The daemon's answer; go_native; or -2 when there is none.
  int ask(int fd, abi::order_request kind) {
    std::uint32_t user = 0;
    abi::order_slot* const s = post(fd, static_cast<std::uint32_t>(kind), user);
    return s == nullptr ? -2 : wait_for(*s, user);
  }

  /// Null: there is no daemon, or no slot.
  abi::order_slot* post(int fd, std::uint32_t kind, std::uint32_t& user) const {
    if (!is_alive()) return nullptr;
    struct stat st = {};
    if (fd >= 0) fstat(fd, &st);
    for (auto& s : area_->slot) {
      std::uint32_t word = s.word.load();
      if ((word & 7) != 0) continue;
      user = ((word >> 3) + 1) & 0x1fffffff;
      if (!s.word.compare_exchange_strong(word, user << 3 | 1)) continue;
      s.kind.store(kind);
      s.eager.store(0);
      s.pid.store(static_cast<std::uint32_t>(getpid()));
      s.fd.store(fd);
      s.device.store(device_of(st));
      s.inode.store(st.st_ino);
      s.since_ns.store(now_ns());
      s.word.store(user << 3 | 2);
      area_->head.doorbell.fetch_add(1);
      if (area_->head.dozing.load() != 0) futex(area_->head.doorbell, FUTEX_WAKE, 1, nullptr);
      return &s;
    }
    return nullptr;
  }

  /// syncfs while nobody empties the log.
  void sync_alone(std::string const& log, int home) const {
    area_->head.voided.fetch_add(1);
    area_->head.voided.fetch_or(abi::order_void);
    int const fd = open(log.c_str(), O_RDONLY | O_CLOEXEC);
    if (syncfs(home) != 0) throw std::runtime_error("syncfs");
    if (marks && (!set_mark(fd) || fsync(fd) != 0))
      throw std::runtime_error("the log takes no mark");
    close(fd);
    area_->head.voided.fetch_or(abi::order_void_done);
    area_->head.voided.fetch_sub(1);
  }

  bool is_alive() const {
    return area_->head.incarnation.load() != 0 &&
           now_ns() < area_->head.heart_ns.load() + silence_ns;
  }
  /// Until the word of the slot is another one, or a moment is over.
  static void nap(abi::order_slot& s, std::uint32_t word) {
    timespec const slice = {0, 20'000'000};
    futex(s.word, FUTEX_WAIT, word, &slice);
  }
  /// False: it was answered meanwhile.
  static bool abandon(abi::order_slot& s, std::uint32_t user) {
    for (std::uint32_t const from : {2, 3, 6}) {
      std::uint32_t seen = user << 3 | from;
      if (s.word.compare_exchange_strong(seen, user << 3 | (from == 2 ? 0u : 5u))) return true;
    }
    return false;
  }
  /// The program's own sync: the daemon does not do it.
  int go_alone(int fd, bool is_sent_back) {
    if (is_sent_back && (state(fd) & abi::order_logged) == 0) return real(fd);
    return go_alone(fd);
  }

  std::uint64_t state(int fd) const {
    std::uint64_t const key = key_of(fd);
    return key == 0 ? 0 : abi::state_of(*area_, abi::set_of(*area_, key), key);
  }

 private:
  static std::uint64_t birth_of(struct statx const& x) {
    return abi::birth_word(x.stx_ino, x.stx_btime.tv_sec, x.stx_btime.tv_nsec);
  }
  bool set_mark(int fd) const {
    struct statx x = {};
    statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_INO, &x);
    abi::order_mark mark = {};
    std::memcpy(mark.log_id, area_->head.log_id, sizeof mark.log_id);
    mark.generation = area_->head.generation.load();
    mark.incarnation = area_->head.incarnation.load();
    mark.inode = x.stx_ino;
    mark.birth = birth_of(x);
    return fsetxattr(fd, abi::order_mark_name, &mark, sizeof mark, 0) == 0;
  }
  static std::uint64_t device_of(struct stat const& st) {
    return std::uint64_t{major(st.st_dev)} << 32 | minor(st.st_dev);
  }
  static std::uint64_t now_ns() {
    timespec t = {};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(t.tv_nsec);
  }
  static long futex(std::atomic<std::uint32_t>& word, int what, std::uint32_t value,
                    timespec const* limit) {
    return syscall(SYS_futex, &word, what, value, limit, nullptr, 0);
  }
  std::uint64_t key_of(int fd) const {
    struct stat st = {};
    return fstat(fd, &st) != 0 ? 0 : abi::order_key(*area_, device_of(st), st.st_ino);
  }
  template <class Do>
  void note(int fd, Do const& act) const {
    std::uint64_t const key = key_of(fd);
    if (key != 0) abi::note_inode(abi::set_of(*area_, key), key, act);
  }
  int wait_for(abi::order_slot& s, std::uint32_t user) const {
    for (;;) {
      std::uint32_t word = s.word.load();
      if (word == (user << 3 | 4)) {
        int const result = s.result.load();
        s.word.compare_exchange_strong(word, user << 3);
        return result;
      }
      if (!is_alive()) {
        if (abandon(s, user)) return -2;
        continue;
      }
      nap(s, word);
    }
  }
  static int real(int fd) { return fsync(fd) == 0 ? 0 : errno; }
  int go_alone(int fd) {
    if (!void_log.empty()) return sync_alone(void_log, fd), 0;
    raise(fd, abi::order_native);
    note(fd, [](abi::order_inode& i) { i.state.fetch_add(abi::order_fallback_one); });
    int failed = real(fd);
    std::uint32_t none = 0;
    if (failed != 0 && (state(fd) & abi::order_logged) != 0)
      area_->head.refused.compare_exchange_strong(none, static_cast<std::uint32_t>(failed));
    if (failed == 0 && (state(fd) & abi::order_logged) != 0)
      failed = static_cast<int>(area_->head.refused.load());
    bool const is_marked = (state(fd) & abi::order_marked) != 0;
    if (failed == 0 && !is_marked && marks && set_mark(fd)) {
      failed = real(fd);
      if (failed == 0) raise(fd, abi::order_marked);
    }
    note(fd, [](abi::order_inode& i) { i.state.fetch_sub(abi::order_fallback_one); });
    return failed;
  }

  abi::order_area* area_;
};

/// A stream of an ordered target, by the rules of the gate. For one thread.
class order_stream {
 public:
  /// `log`, `home`: for when nobody has a file open any more.
  order_stream(guest& program, std::string log, int home)
      : program_(program), log_(std::move(log)), home_(home) {}

  /// fsync that returns at once.
  int barrier(int fd, abi::order_request kind) {
    posted p;
    p.unsure = program_.area().head.unsure.load();
    p.fd = fd;
    fstat(fd, &p.file);
    auto const what = static_cast<std::uint32_t>(kind) | abi::order_barrier;
    bool const is_bypassed = (program_.state(fd) & abi::order_bypass) != 0;
    p.slot = is_bypassed ? nullptr : program_.post(fd, what, p.user);
    if (p.slot == nullptr) return program_.sync(fd, kind);
    ++posted_;
    open_.push_back(p);
    return 0;
  }
  /// Before every change.
  int pass() {
    int error = 0;
    for (auto const& p : open_)
      if (int const e = settle(p); e != 0) error = e;
    open_.clear();
    return error;
  }
  /// The daemon has to have the file open before it is closed here.
  int before_close(int fd) {
    int error = 0;
    std::erase_if(open_, [&](posted const& p) {
      if (p.fd != fd) return false;
      std::uint32_t word = p.slot->word.load();
      for (; word == (p.user << 3 | 2) || word == (p.user << 3 | 3); word = p.slot->word.load()) {
        if (!program_.is_alive()) break;
        guest::nap(*p.slot, word);
      }
      if (word == (p.user << 3 | 6)) return false;
      if (int const e = settle(p); e != 0) error = e;
      return true;
    });
    return error;
  }
  unsigned count() const { return posted_; }

 private:
  struct posted {
    abi::order_slot* slot = nullptr;
    std::uint32_t user = 0, unsure = 0;
    int fd = -1;
    struct stat file = {};
  };

  int settle(posted const& p) {
    abi::order_header& head = program_.area().head;
    for (;;) {
      std::uint32_t const word = p.slot->word.load(), is = word & 7;
      if (word >> 3 != p.user || is == 0)
        return head.unsure.load() == p.unsure ? 0 : make_good(p, false);
      if (is == 4) {
        std::int32_t const result = p.slot->result.load();
        int const error = result == abi::go_native ? make_good(p, true) : result;
        std::uint32_t seen = word;
        if (error != 0) ++head.unsure;
        p.slot->word.compare_exchange_strong(seen, p.user << 3);
        return error;
      }
      if (is == 5) return make_good(p, false);
      if (program_.is_alive()) {
        guest::nap(*p.slot, word);
        continue;
      }
      ++head.unsure;
      guest::abandon(*p.slot, p.user);
    }
  }
  int make_good(posted const& p, bool is_sent_back) {
    struct stat st = {};
    bool const is_here =
        fstat(p.fd, &st) == 0 && st.st_ino == p.file.st_ino && st.st_dev == p.file.st_dev;
    if (is_here) return program_.go_alone(p.fd, is_sent_back);
    if (program_.ask(-1, abi::order_request::sync_all) != 0)
      program_.sync_alone(log_, home_);
    else if (syncfs(home_) != 0)
      return errno;
    return 0;
  }

  guest& program_;
  std::string log_;
  int home_;
  unsigned posted_ = 0;
  std::vector<posted> open_;
};

}  // namespace sluice::test
