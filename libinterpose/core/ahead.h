// SPDX-License-Identifier: Apache-2.0
// When to ask the kernel to read ahead for a program that works in small pieces. Two habits are
// known that a kernel's own read-ahead does not see. One overwrites a file in pieces that end in
// the middle of pages: each such page is read first, alone, while the program waits. The other
// reads pieces at equal distances. Pure: who asks the kernel says what it found.
// What stays true: advice changes no byte, so a wrong guess costs time alone. Where advice is good
// for nothing, because there is nothing to be read or it does not stay, looks become rare.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::core {

inline constexpr std::uint64_t ahead_page = 4096;
inline constexpr std::uint64_t ahead_window = 1 << 20;
/// Of a larger piece most pages are written whole, so reading all of them would be a loss.
inline constexpr std::uint64_t ahead_most_piece = 16 << 10;
inline constexpr unsigned ahead_enough = 4;  // pieces in a row make a habit

/// Bytes of a file, [from, to).
struct file_span {
  std::uint64_t from = 0, to = 0;
  bool is_empty() const { return from >= to; }
};

/// What came of a span that a look named.
enum class ahead_end : std::uint8_t {
  was_cached,  // or the disk has nothing of what the cache lacks
  has_come,    // it was advised, and the cache has some of it now
  stays_away,  // it was advised, and no disk had it, or the cache has nothing more of it
  unpaid,
};

constexpr bool is_in_vain(ahead_end e) {
  return e == ahead_end::was_cached || e == ahead_end::stays_away;
}

/// Sequential writes of pieces that do not fill pages, to one file.
class overwrites {
 public:
  /// `n` bytes were written at `at`, or where the file stood (-1). True: look() is due.
  bool wrote(std::int64_t at, std::uint64_t n) {
    bool const is_whole = n % ahead_page == 0 && (at < 0 || at % std::int64_t{ahead_page} == 0);
    bool const follows = at < 0 || at == next_;
    next_ = at < 0 ? -1 : at + static_cast<std::int64_t>(n);
    left_ -= std::min(left_, n);
    bool const is_of_habit = follows && !is_whole && n <= ahead_most_piece;
    run_ = is_of_habit ? std::min(run_ + 1, ahead_enough) : 0;
    return run_ == ahead_enough && left_ == 0;
  }

  /// The next byte goes to `at`, and the file has `size` bytes. What to read ahead.
  file_span look(std::uint64_t at, std::uint64_t size) {
    if (at >= size) {  // it grows: nothing is there to be read
      rest();
      return {};
    }
    bool const goes_on = at <= ahead_ && ahead_ - at <= 2 * ahead_window;
    std::uint64_t const from = goes_on ? ahead_ : at - at % ahead_page;
    ahead_ = std::min(from + ahead_window, size);
    left_ = ahead_ - at > ahead_window / 2 ? ahead_ - at - ahead_window / 2 : ahead_window / 2;
    return {from, ahead_};
  }

  void came_of_it(ahead_end e) {
    in_vain_ = is_in_vain(e) ? in_vain_ + 1 : 0;
    if (in_vain_ == 0) rest_ = ahead_window;
    if (in_vain_ >= 2) rest();
  }

  /// No look for a while, and for longer each time.
  void rest() {
    left_ = rest_;
    rest_ = std::min(2 * rest_, 64 * ahead_window);
  }

 private:
  std::int64_t next_ = -1;   // where the next piece follows; -1: not known
  std::uint64_t ahead_ = 0;  // up to there it was advised
  std::uint64_t left_ = 0;   // bytes to write before the next look
  std::uint64_t rest_ = ahead_window;
  unsigned run_ = 0, in_vain_ = 0;
};

/// Reads of small pieces at equal distances, of one file.
class strided_reads {
 public:
  static constexpr unsigned depth = 8;    // so many pieces are read ahead
  static constexpr unsigned at_once = 2;  // spans of one look
  static constexpr unsigned shortest_rest = 64, longest_rest = 64 << 10;  // reads

  struct advice {
    file_span span[at_once];
    unsigned count = 0;
  };

  /// `n` bytes were read at `at`.
  advice read(std::int64_t at, std::uint64_t n) {
    std::int64_t const step = at - last_;
    last_ = at;
    if (ahead_ > 0) --ahead_;
    bool const is_dense = step >= 0 && static_cast<std::uint64_t>(step) <= std::max(n, ahead_page);
    if (step != step_ || is_dense || n == 0 || n > ahead_most_piece) {
      step_ = step;
      run_ = ahead_ = 0;
      return {};
    }
    if (run_ < ahead_enough) ++run_;
    if (left_ > 0) --left_;
    if (run_ < ahead_enough || left_ > 0) return {};
    return next(at, n);
  }

  void came_of_it(ahead_end e) {
    in_vain_ = is_in_vain(e) ? in_vain_ + 1 : 0;
    if (in_vain_ == 0) rest_ = shortest_rest;
    if (in_vain_ < depth) return;
    in_vain_ = ahead_ = 0;
    rest();
  }

  void rest() {
    left_ = rest_;
    rest_ = std::min(2 * rest_, longest_rest);
  }

 private:
  advice next(std::int64_t at, std::uint64_t n) {
    advice out;
    while (out.count < at_once && ahead_ < depth) {
      std::int64_t const from = at + step_ * static_cast<std::int64_t>(ahead_ + 1);
      if (from < 0) break;
      auto const first = static_cast<std::uint64_t>(from);
      out.span[out.count++] = {first, first + n};
      ++ahead_;
    }
    return out;
  }

  std::int64_t last_ = 0, step_ = 0;
  unsigned run_ = 0, ahead_ = 0, in_vain_ = 0;
  unsigned left_ = 0;  // reads before the next advice
  unsigned rest_ = shortest_rest;
};

}  // namespace sluice::core
