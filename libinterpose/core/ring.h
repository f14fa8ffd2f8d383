// SPDX-License-Identifier: Apache-2.0
// Problem: what a program has written must survive it, and be found by whoever opens the file. So
// small writes wait in memory that the program shares with another process, the keeper. Either may
// be killed between two instructions, and neither may wait for one that copies.
// Idea: a ring of bytes with two ends. The program alone adds to `end`, with one compare-and-swap
// after it has copied; the keeper alone moves `begin`, after it has written to the file. Only one
// thread copies at a time: who finds it taken shuts the ring, and makes his write himself. Anyone
// may shut it, and the keeper opens it. `end` has a generation, so what somebody was just copying
// never counts in a ring that was shut.
// What stays true: bytes are in the ring for as long as their writer was told so and the file lacks
// them, in the order in which writers were told. A ring that is taken is not opened again as long
// as its process lives.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace sluice::core {

/// In memory that two processes share; to whoever does not trust the other all of it may be
/// garbage.
struct ring {
  static constexpr std::uint32_t room = 256 << 10;
  static constexpr std::uint32_t due = room / 2;  // so many are written out at once

  alignas(64) std::atomic<std::uint64_t> end;    // program: see below
  std::atomic<std::uint32_t> is_taken;           // program; somebody copies
  std::atomic<std::uint32_t> calls;              // program; writes that were accepted
  std::atomic<std::uint32_t> wants_all;          // program, until the keeper looks; 1: write it now
  alignas(64) std::atomic<std::uint64_t> begin;  // keeper; bytes that the file has
  std::atomic<std::uint32_t> flushes;            // keeper; its writes
  std::atomic<std::uint32_t> error;              // keeper; of a write: what came after it is lost
  std::atomic<std::uint32_t> moves;              // keeper; a futex: grows with the two before
  char bytes[room];
};

namespace ring_end {

inline constexpr std::uint64_t is_shut = std::uint64_t{1} << 47;
constexpr std::uint64_t bytes_of(std::uint64_t end) { return end & (is_shut - 1); }
/// Another generation, with as many bytes.
constexpr std::uint64_t next_of(std::uint64_t end) {
  return ((end >> 48) + 1) << 48 | bytes_of(end);
}

}  // namespace ring_end

enum class added : std::uint8_t {
  yes,
  full,  // the keeper has to write
  no     // it is shut, taken, or the bytes could not be copied
};

/// Program. copy(offset in the ring, offset in the piece, bytes), once or twice, puts them there;
/// false: it cannot.
template <class Copy>
added add(ring& r, std::uint32_t size, Copy&& copy) {
  if (size > ring::room || r.is_taken.exchange(1, std::memory_order_acquire) != 0) return added::no;
  std::uint64_t seen = r.end.load();
  std::uint64_t const at = ring_end::bytes_of(seen);
  auto const from = static_cast<std::uint32_t>(at % ring::room);
  std::uint32_t const first = std::min(size, ring::room - from);
  bool const is_open = (seen & ring_end::is_shut) == 0;
  bool const is_full = at + size > r.begin.load(std::memory_order_acquire) + ring::room;
  bool is_in = is_open && !is_full && copy(from, 0u, first) &&
               (first == size || copy(0u, first, size - first));
  if (is_in) is_in = r.end.compare_exchange_strong(seen, seen + size);
  if (is_in) r.calls.store(r.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  r.is_taken.store(0, std::memory_order_release);
  return is_in ? added::yes : is_open && is_full ? added::full : added::no;
}

/// Anyone. Nothing is added from now on.
inline void shut(ring& r) {
  std::uint64_t seen = r.end.load();
  while ((seen & ring_end::is_shut) == 0 &&
         !r.end.compare_exchange_weak(seen, ring_end::next_of(seen) | ring_end::is_shut)) {
  }
}

/// Keeper, of one that is shut and not taken: empty.
inline void open(ring& r) {
  // Who is killed in here leaves one that is empty.
  std::uint64_t const generation = (ring_end::next_of(r.end.load()) >> 48) << 48;
  r.end.store(generation | ring_end::is_shut);
  r.begin.store(0);
  r.flushes.store(0);
  r.error.store(0);
  r.calls.store(0);
  r.wants_all.store(0);
  r.end.store(generation);
}

inline std::uint64_t bytes_in(ring const& r) { return ring_end::bytes_of(r.end.load()); }
/// That the file lacks. To who does not trust the other side: never more than there is room for.
inline std::uint64_t waiting_bytes(ring const& r) {
  std::uint64_t const begin = r.begin.load(), end = bytes_in(r);
  return begin < end ? std::min<std::uint64_t>(end - begin, ring::room) : 0;
}
inline bool is_shut(ring const& r) { return (r.end.load() & ring_end::is_shut) != 0; }

}  // namespace sluice::core
