// SPDX-License-Identifier: Apache-2.0
// Problem: several threads and their signal handlers add small pieces to one buffer, and any of
// them may be interrupted between two instructions for ever (longjmp). Nobody may wait for such a
// one.
// Idea: who copies has marked the buffer as taken. What was copied counts when one
// compare-and-swap moves the end. Who finds it taken, or full, shuts the buffer: the end has
// another generation then. What somebody was just copying never counts; he sees it, and makes his
// write himself.
// What stays true: bytes are in the buffer for as long as their writer was told so, in the order in
// which writers were told. A buffer that is taken for good is never opened again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace sluice::core {

/// Flushes end at a multiple of this in the file; what comes after it stays for the next one.
inline constexpr std::uint32_t gather_window = 1 << 20;
inline constexpr std::uint32_t most_piece = 16 << 10;  // larger writes are made as they come
inline constexpr std::uint32_t gather_room = gather_window + most_piece;
inline constexpr unsigned gather_begin = 32;  // small writes in a row make a habit
/// Beginning and ending cost about as much as so many writes: what brings fewer together is in
/// vain.
inline constexpr unsigned few_writes = 16;
inline constexpr unsigned most_vain_flushes = 4;  // in a row
inline constexpr unsigned asks_rarely = 32;       // memory is asked for once in so many writes

/// How much may be gathered at `at` (-1: at the end of the file, where no multiple is known) before
/// it is written out.
constexpr std::uint32_t most_gathered(std::int64_t at) {
  if (at < 0) return gather_window;
  return gather_window - static_cast<std::uint32_t>(at % gather_window);
}

/// Of so many bytes, those after the last multiple. Where there is none between, all go.
constexpr std::uint32_t kept_bytes(std::uint64_t at, std::uint32_t bytes) {
  std::uint32_t const first = most_gathered(static_cast<std::int64_t>(at));
  return bytes < first ? 0 : (bytes - first) % gather_window;
}

class gathered {
 public:
  struct contents {
    std::uint32_t bytes = 0, calls = 0;
  };

  /// Adds `size` bytes, which copy(offset) puts in place; false: it could not. False: nothing was
  /// added. The last piece may go beyond what open() allowed, by less than its size.
  template <class Copy>
  bool add(std::uint32_t size, Copy&& copy) {
    if (taken_.exchange(true, std::memory_order_acquire)) return false;
    std::uint64_t seen = end_.load(std::memory_order_acquire);
    bool is_in = bytes_of(seen) < most_ && copy(bytes_of(seen));
    if (is_in) is_in = end_.compare_exchange_strong(seen, seen + size, std::memory_order_acq_rel);
    if (is_in) calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    taken_.store(false, std::memory_order_release);
    return is_in;
  }

  /// Nobody adds from now on. What is in it.
  contents shut() {
    std::uint64_t seen = end_.load(std::memory_order_acquire);
    while (!end_.compare_exchange_weak(seen, next_of(seen) | is_shut)) {
    }
    return {bytes_of(seen), calls_.exchange(0)};
  }

  /// With so many bytes in it already, until there are `most`. Only after shut(), or new.
  void open(std::uint32_t bytes, std::uint32_t most) {
    most_ = most;
    end_.store(next_of(end_.load()) | bytes, std::memory_order_release);
  }

  bool is_any() const {
    std::uint32_t const bytes = bytes_of(end_.load(std::memory_order_acquire));
    return bytes != 0 && bytes != is_shut;
  }
  bool is_taken() const { return taken_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint32_t is_shut = 0xffff'ffff;
  static std::uint32_t bytes_of(std::uint64_t end) { return static_cast<std::uint32_t>(end); }
  static std::uint64_t next_of(std::uint64_t end) { return ((end >> 32) + 1) << 32; }

  std::atomic<bool> taken_{false};
  std::uint32_t most_ = 0;
  std::atomic<std::uint32_t> calls_{0};
  std::atomic<std::uint64_t> end_{is_shut};  // generation, and bytes
};

/// Whether a descriptor's writes are worth being gathered. Threads may come here at once; then it
/// is a little wrong.
class habit {
 public:
  /// It is another file's from now on.
  void begin(int fd) {
    set(fd_after_, fd + 1);
    set(run_, 0u);
    set(left_, 0u);
    set(doublings_, 0u);
  }
  /// The next write is the first of a run.
  bool is_at_begin(int fd) const { return get(fd_after_) != fd + 1 || get(run_) == 0; }
  /// It wrote `n` bytes. True: one may begin.
  bool wrote(int fd, std::uint64_t n) {
    if (get(fd_after_) != fd + 1) begin(fd);
    if (n > most_piece) {
      set(run_, 0u);
      return false;
    }
    if (unsigned const left = get(left_); left != 0) {
      set(left_, left - 1);
      return false;
    }
    unsigned const run = get(run_) + 1;
    set(run_, run % gather_begin);
    return run == gather_begin;
  }
  /// It did not pay, or cannot be done: the next writes do not count, twice as many as last time.
  void pause() {
    constexpr unsigned first = 256, most_doublings = 12;
    unsigned const doublings = get(doublings_);
    set(left_, first << doublings);
    set(doublings_, std::min(doublings + 1, most_doublings));
  }

 private:
  template <class T>
  static T get(std::atomic<T> const& from) {
    return from.load(std::memory_order_relaxed);
  }
  template <class T>
  static void set(std::atomic<T>& to, T value) {
    to.store(value, std::memory_order_relaxed);
  }
  std::atomic<int> fd_after_{0};
  std::atomic<unsigned> run_{0}, left_{0}, doublings_{0};
};

}  // namespace sluice::core
