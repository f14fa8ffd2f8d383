// SPDX-License-Identifier: Apache-2.0
// Small writes that wait in memory outside the program: a file `rings` beside the segment of a job
// that has a strict target. One ring for each row of a board of write leases. A stage that has a
// row adds to its ring (core/ring.h), the keepers of `sluice run` write from there to the file
// (daemon/keepers/write_keeper.h). Both belong to the user of the job, and have no more rights
// than he has: garbage in here is his own loss.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "abi/lease_board.h"
#include "core/ring.h"

namespace sluice::abi {

inline constexpr std::uint64_t rings_magic = 0x3167'6563'6975'6c73ull;  // "sluiceg1" in memory
inline constexpr std::uint32_t rings_layout_version = 1;

/// What a keeper says before it writes to a file, so that its successor knows how far it came.
struct write_begun {
  std::atomic<std::uint32_t> bytes;  // 0: none is under way; last, and first to go
  std::uint32_t pad;
  std::atomic<std::uint64_t> ring_begin;  // before it
  std::atomic<std::uint64_t> file_end;    // where the file, or its position if not appended, was
};

/// Where the ring begins after it: so much of it came into the file, whose end is there now.
/// Of one that is under way.
inline std::uint64_t begin_after(write_begun const& begun, std::uint64_t file_end_now) {
  return begun.ring_begin.load() +
         std::min<std::uint64_t>(file_end_now - begun.file_end.load(), begun.bytes.load());
}

struct ring_header {
  std::atomic<std::uint64_t> magic_word;  // creator, last
  std::uint32_t layout;                   // creator
  std::uint32_t owner_uid;                // creator
  std::uint64_t total_bytes;              // creator; size of the file
  std::uint32_t ring_bytes;               // creator; sizeof each
  std::atomic<std::uint32_t> is_asleep;   // keeper; 1: no ring has bytes, and it wants the bell for
                                          // the first
  std::atomic<std::uint32_t> house;       // the first keeper of those that follow one another: what
                                          // they hold no other house has
};

struct ring_area {
  ring_header head;
  lease_board<write_leases> board;
  write_begun begun[write_leases];
  alignas(4096) core::ring ring[write_leases];
};

static_assert(std::is_standard_layout_v<ring_area>);

/// Null when the area of so many bytes, of which this is the head, has our layout; else what is
/// wrong.
inline char const* refuse_rings(ring_header const& h, std::uint64_t bytes) {
  if (bytes < sizeof(ring_area)) return "too short";
  if (h.magic_word.load(std::memory_order_acquire) != rings_magic) return "not an area of rings";
  if (h.layout != rings_layout_version) return "another layout version";
  if (h.total_bytes != sizeof(ring_area)) return "another size";
  if (h.ring_bytes != sizeof(core::ring)) return "other record sizes";
  return nullptr;
}
inline char const* refuse_reason(ring_area const& a, std::uint64_t bytes) {
  return bytes < sizeof(ring_area) ? "too short" : refuse_rings(a.head, bytes);
}

}  // namespace sluice::abi
