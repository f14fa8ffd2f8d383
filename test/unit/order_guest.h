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
    if (!is_alive()) return -2;
    struct stat st = {};
    fstat(fd, &st);
    for (auto& s : area_->slot) {
      std::uint32_t word = s.word.load();
      if ((word & 7) != 0) continue;
      std::uint32_t const user = (word >> 3) + 1;
      if (!s.word.compare_exchange_strong(word, user << 3 | 1)) continue;
      s.kind.store(static_cast<std::uint32_t>(kind));
      s.pid.store(static_cast<std::uint32_t>(getpid()));
      s.fd.store(fd);
      s.device.store(device_of(st));
      s.inode.store(st.st_ino);
      s.since_ns.store(now_ns());
      s.word.store(user << 3 | 2);
      area_->head.doorbell.fetch_add(1);
      if (area_->head.dozing.load() != 0) futex(area_->head.doorbell, FUTEX_WAKE, 1, nullptr);
      return wait_for(s, user);
    }
    return -2;
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
  bool is_alive() const {
    return area_->head.incarnation.load() != 0 &&
           now_ns() < area_->head.heart_ns.load() + abi::order_silence_ns;
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
        std::uint32_t posted = user << 3 | 2, taken = user << 3 | 3;
        if (s.word.compare_exchange_strong(posted, user << 3)) return -2;
        if (s.word.compare_exchange_strong(taken, user << 3 | 5)) return -2;
        continue;
      }
      timespec const slice = {0, 20'000'000};
      futex(s.word, FUTEX_WAIT, word, &slice);
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

}  // namespace sluice::test
