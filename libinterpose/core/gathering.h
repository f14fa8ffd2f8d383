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

/// In an eager build (make EAGER=1) the first small call asks for a lease, and waits for the
/// answer. So the tests of other programs meet leases, though few of them write much.
#ifdef SLUICE_EAGER
inline constexpr bool is_eager = true;
#else
inline constexpr bool is_eager = false;
#endif

/// Flushes end at a multiple of this in the file; what comes after it stays for the next one.
inline constexpr std::uint32_t gather_window = 1 << 20;
inline constexpr std::uint32_t most_piece = 16 << 10;  // larger writes are made as they come
inline constexpr std::uint32_t gather_room = gather_window + most_piece;
inline constexpr unsigned gather_begin = is_eager ? 1 : 32;  // small writes in a row make a habit
/// Beginning and ending cost about as much as so many writes: what brings fewer together is in
/// vain.
inline constexpr unsigned few_writes = 16;
inline constexpr unsigned most_vain_flushes = 4;  // in a row
/// What has waited for so many coarse ticks, a second, is written out with the next write: others
/// can follow what a program writes, and one that writes slowly is not held for long.
inline constexpr std::uint32_t most_wait_ticks = 8;
inline constexpr unsigned asks_rarely = 32;  // memory is asked for once in so many writes
inline constexpr unsigned most_doubts = 3;   // in vain

/// Small reads: up to so many bytes make a habit. A lease costs about as much as a few hundred of
/// them, so there must be more to come. Where fewer came, the next one is asked for after twice as
/// many: some programs read only the beginning of each file.
inline constexpr std::uint32_t small_read = is_eager ? most_piece : 1 << 10;
inline constexpr std::uint32_t read_window = 64 << 10;  // what is read ahead at once
inline constexpr std::uint32_t read_room = 2 * read_window;
inline constexpr unsigned reads_to_come = is_eager ? 0 : 1024;
/// Or writes: what pays for a lease, and more.
inline constexpr unsigned enough_reads = is_eager ? 0 : 400;
inline constexpr unsigned most_patience = 4096;
constexpr unsigned patience_after(unsigned patience, unsigned answered,
                                  unsigned least = gather_begin) {
  return answered >= enough_reads ? least : std::min(2 * patience, most_patience);
}

/// Small writes that wait outside the program: a lease costs about as much as 170 to 200 of them.
inline constexpr unsigned strict_begin = is_eager ? 1 : 128;
inline constexpr std::uint32_t small_write = 1 << 10;        // up to so many bytes make a habit
inline constexpr std::uint32_t most_strict_piece = 4 << 10;  // larger writes are made as they come
inline constexpr unsigned few_strict_writes = is_eager ? 0 : 64;  // as few_writes
// What the keeper writes by himself at a tick takes as long as some 160 writes of the program.
inline constexpr unsigned few_tick_writes = is_eager ? 0 : 256;

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

/// How much is read at `at` for a read of `size` bytes: to a multiple of the window.
constexpr std::uint32_t most_read_ahead(std::uint64_t at, std::uint32_t size) {
  auto const left = static_cast<std::uint32_t>(read_window - at % read_window);
  return left < size ? left + read_window : left;
}
static_assert(most_piece <= read_window);

class gathered {
 public:
  struct contents {
    std::uint32_t bytes = 0, calls = 0;
  };

  /// Adds `size` bytes, which copy(offset) puts in place; false: it could not. False: nothing was
  /// added. The last piece may go beyond what open() allowed, by less than its size.
  template <class Copy>
  bool add(std::uint32_t size, Copy&& copy) {
    if (taken_.exchange(true)) return false;
    std::uint64_t seen = end_.load();
    bool is_in = bytes_of(seen) < most_.load(std::memory_order_relaxed) && copy(bytes_of(seen));
    if (is_in) is_in = end_.compare_exchange_strong(seen, seen + size, std::memory_order_acq_rel);
    if (is_in) calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    taken_.store(false, std::memory_order_release);
    return is_in;
  }

  /// The other way round: takes up to `size` of the bytes that open() said are there, which
  /// copy(offset, n) brings to their place. How many; or `none`: nothing was taken, for fewer are
  /// left and these are not the last of all, or copy() could not.
  static constexpr std::uint32_t none = 0xffff'ffff;
  template <class Copy>
  std::uint32_t draw(std::uint32_t size, Copy&& copy) {
    if (taken_.exchange(true)) return none;
    std::uint64_t const seen = end_.load();
    std::uint32_t const most = most_.load(std::memory_order_relaxed);
    std::uint32_t const left = bytes_of(seen) < most ? most - bytes_of(seen) : 0;
    std::uint32_t const n = std::min(size, left);
    bool is_done =
        bytes_of(seen) != is_shut && (n == size || are_last_.load(std::memory_order_relaxed));
    if (is_done) is_done = copy(bytes_of(seen), n);
    std::uint64_t expected = seen;
    if (is_done)
      is_done = end_.compare_exchange_strong(expected, seen + n, std::memory_order_acq_rel);
    if (is_done)
      calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    taken_.store(false, std::memory_order_release);
    return is_done ? n : none;
  }

  /// Nobody adds from now on. What is in it.
  contents shut() {
    std::uint64_t seen = end_.load(std::memory_order_acquire);
    while (!end_.compare_exchange_weak(seen, next_of(seen) | is_shut)) {
    }
    return {bytes_of(seen), calls_.exchange(0)};
  }

  /// With so many bytes in it already, until there are `most`; `are_last`: none come after those.
  /// Only after shut(), or new.
  void open(std::uint32_t bytes, std::uint32_t most, bool are_last = false) {
    most_.store(most, std::memory_order_relaxed);
    are_last_.store(are_last, std::memory_order_relaxed);
    end_.store(next_of(end_.load()) | bytes, std::memory_order_release);
  }

  bool is_any() const {
    std::uint32_t const bytes = bytes_of(end_.load(std::memory_order_acquire));
    return bytes != 0 && bytes != is_shut;
  }
  /// Who shuts first and finds it free is met by nobody who still copies: both orders are total.
  bool is_taken() const { return taken_.load(); }

 private:
  static constexpr std::uint32_t is_shut = 0xffff'ffff;
  static std::uint32_t bytes_of(std::uint64_t end) { return static_cast<std::uint32_t>(end); }
  static std::uint64_t next_of(std::uint64_t end) { return ((end >> 32) + 1) << 32; }

  std::atomic<bool> taken_{false};
  // One who comes when it is shut reads them while they change, and makes no use of them.
  std::atomic<std::uint32_t> most_{0};
  std::atomic<bool> are_last_{false};
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
  bool is_at_begin(int fd) const {
    return get(fd_after_) != fd + 1 || (get(run_) == 0 && get(left_) == 0);
  }
  /// It wrote `n` bytes. True: one may begin, after so many small ones in a row.
  bool wrote(int fd, std::uint64_t n, unsigned in_a_row = gather_begin) {
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
    bool const is_habit = run >= in_a_row;
    set(run_, is_habit ? 0u : run);
    return is_habit;
  }
  /// It did not pay, or cannot be done: the next writes do not count, twice as many as last time.
  void pause() {
    constexpr unsigned first = is_eager ? 0 : 256, most_doublings = 12;
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
