// SPDX-License-Identifier: Apache-2.0
// Finds the most used of very many paths in a fixed number of slots: the space-saving sketch of
// Metwally, Agrawal and El Abbadi (ICDT 2005). A path without a slot takes that of the least used
// one. Its own count may then be too high by the count of that one. Any number of processes write
// at once; nobody holds anything, and a slot that a writer left half changed is taken over a second
// later.
// Must stay true: the counts add up to the uses noted; a path with more than uses / slots of them
// has a slot; a count is never too low, and too high by at most `over`, which is at most uses /
// slots. While several processes write, all this holds except for the uses being noted meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/path_text.h"

namespace sluice::core {

inline constexpr unsigned sketch_text_bytes = 224;  // with the terminating zero

/// What is known of the path in a slot besides its count. Bytes and times are those noted since
/// it has the slot.
struct sketch_row {
  std::atomic<std::uint64_t> over;  // the count may be too high by this
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> waited_ns;
  std::atomic<std::uint64_t> took_ns;                      // estimated from a sample
  std::atomic<std::uint64_t> text[sketch_text_bytes / 8];  // zeros behind it
};
static_assert(sizeof(sketch_row) == 256);

template <unsigned slot_count>
struct path_sketch {
  static constexpr unsigned slots = slot_count;  // as an answer: none
  std::atomic<std::uint64_t> key[slots];         // sketch_key(); 0 free; or busy_slot()
  std::atomic<std::uint64_t> calls[slots];
  sketch_row row[slots];
};

inline constexpr std::uint64_t busy_bit = std::uint64_t{1} << 63;
inline constexpr std::uint32_t busy_ticks = 8;  // then who was changing a slot counts as dead

/// Who writes, and when: what a slot says while it changes hands. A tick is about 134 ms.
struct sketch_writer {
  std::uint32_t tick;
  std::uint32_t tid;
};

constexpr std::uint64_t busy_slot(sketch_writer w) {
  return busy_bit | std::uint64_t{w.tick & 0x7fffffff} << 32 | w.tid;
}
constexpr bool is_busy(std::uint64_t key) { return (key & busy_bit) != 0; }
constexpr bool is_abandoned(std::uint64_t key, std::uint32_t tick) {
  return is_busy(key) && ((tick - static_cast<std::uint32_t>(key >> 32)) & 0x7fffffff) > busy_ticks;
}

/// Of a path of less than sketch_text_bytes.
inline std::uint64_t sketch_key(char const* text, unsigned length) {
  std::uint64_t const key = hash_of(text, length) >> 1;
  return key != 0 ? key : 1;
}

/// The slot of a path, or none. `hint`: where it may be.
template <class Sketch>
unsigned find_slot(Sketch const& s, std::uint64_t key, unsigned hint) {
  if (hint < s.slots && s.key[hint].load(std::memory_order_relaxed) == key) return hint;
  for (unsigned i = 0; i < s.slots; ++i)
    if (s.key[i].load(std::memory_order_relaxed) == key) return i;
  return s.slots;
}

namespace detail {

template <class Sketch>
unsigned least_used(Sketch const& s, std::uint32_t tick, std::uint64_t& fewest) {
  unsigned least = s.slots;
  fewest = ~std::uint64_t{0};
  for (unsigned i = 0; i < s.slots; ++i) {
    std::uint64_t const calls = s.calls[i].load(std::memory_order_relaxed);
    if (calls >= fewest) continue;
    std::uint64_t const key = s.key[i].load(std::memory_order_relaxed);
    if (is_busy(key) && !is_abandoned(key, tick)) continue;
    least = i;
    fewest = calls;
  }
  return least;
}

inline void write_row(sketch_row& row, std::uint64_t over, char const* text, unsigned length) {
  row.over.store(over, std::memory_order_relaxed);
  row.bytes.store(0, std::memory_order_relaxed);
  row.waited_ns.store(0, std::memory_order_relaxed);
  row.took_ns.store(0, std::memory_order_relaxed);
  for (unsigned i = 0; i < sketch_text_bytes / 8; ++i) {
    char part[8] = {};
    for (unsigned b = 0; b < 8 && i * 8 + b < length; ++b) part[b] = text[i * 8 + b];
    row.text[i].store(word_at(part), std::memory_order_relaxed);
  }
}

/// The least used slot, now of this path. None: others changed all that was tried.
template <class Sketch>
unsigned take_slot(Sketch& s, std::uint64_t key, char const* text, unsigned length,
                   sketch_writer who) {
  for (unsigned round = 0; round < 8; ++round) {
    std::uint64_t fewest;
    unsigned const at = least_used(s, who.tick, fewest);
    if (at == s.slots) break;
    std::uint64_t seen = s.key[at].load(std::memory_order_relaxed);
    if (is_busy(seen) && !is_abandoned(seen, who.tick)) continue;
    std::uint64_t busy = busy_slot(who);
    if (!s.key[at].compare_exchange_strong(seen, busy)) continue;
    // We slept since we looked, and it is not the least used any more.
    if (!is_busy(seen) && s.calls[at].load(std::memory_order_relaxed) > fewest * 2 + 8) {
      s.key[at].compare_exchange_strong(busy, seen);
      continue;
    }
    write_row(s.row[at], s.calls[at].load(std::memory_order_relaxed), text, length);
    // Taken from us, because we slept for a second: what we wrote is seen by its text.
    return s.key[at].compare_exchange_strong(busy, key) ? at : s.slots;
  }
  return s.slots;
}

}  // namespace detail

/// Counts one use of a path, and gives it a slot if it has none. The slot, or none: not counted.
template <class Sketch>
unsigned note_path(Sketch& s, std::uint64_t key, char const* text, unsigned length, unsigned hint,
                   sketch_writer who) {
  unsigned at = find_slot(s, key, hint);
  if (at == s.slots) at = detail::take_slot(s, key, text, length, who);
  if (at < s.slots) s.calls[at].fetch_add(1, std::memory_order_relaxed);
  return at;
}

/// A slot as it is read. One path may have two for a while: whoever reads adds them up.
struct sketch_entry {
  std::uint64_t calls, over, bytes, waited_ns, took_ns;
  unsigned length;
  char text[sketch_text_bytes];
};

/// False: free, changing, or written over with something else.
template <class Sketch>
bool read_slot(Sketch const& s, unsigned at, sketch_entry& to) {
  std::uint64_t const key = s.key[at].load(std::memory_order_acquire);
  if (key == 0 || is_busy(key)) return false;
  sketch_row const& row = s.row[at];
  to.calls = s.calls[at].load(std::memory_order_relaxed);
  to.over = row.over.load(std::memory_order_relaxed);
  to.bytes = row.bytes.load(std::memory_order_relaxed);
  to.waited_ns = row.waited_ns.load(std::memory_order_relaxed);
  to.took_ns = row.took_ns.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < sketch_text_bytes / 8; ++i) {
    std::uint64_t const word = row.text[i].load(std::memory_order_relaxed);
    __builtin_memcpy(to.text + i * 8, &word, sizeof word);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  to.length = static_cast<unsigned>(strnlen(to.text, sketch_text_bytes));
  return to.length < sketch_text_bytes && to.over <= to.calls &&
         sketch_key(to.text, to.length) == key && s.key[at].load(std::memory_order_relaxed) == key;
}

}  // namespace sluice::core
