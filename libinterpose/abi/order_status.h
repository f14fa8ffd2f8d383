// SPDX-License-Identifier: Apache-2.0
// The journal daemon's figures for people: a small file that it maps and writes in its loop,
// because a write to a file could wait for a disk. A reader reads it once, as it is: figures of one
// moment may be a few milliseconds apart. No stage reads it.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace sluice::abi {

inline constexpr std::uint64_t order_status_magic = 0x3173'6563'6975'6c73ull;  // "sluices1"
inline constexpr std::uint32_t order_status_layout = 5;

struct order_status {
  std::atomic<std::uint64_t> magic_word;  // last of the fixed part
  std::uint32_t layout;
  std::uint32_t pid;
  std::uint64_t total_bytes;
  char log_path[1024];  // from the root, ended by a zero

  // Times are CLOCK_MONOTONIC, in ns. Counts begin with a generation of the journal.
  std::atomic<std::uint64_t> heart_ns;
  std::atomic<std::uint64_t> generation;   // of the journal; 0: it is recovered first
  std::atomic<std::uint64_t> only_syncs;   // 1: that recovery writes no file, so they may be used
  std::atomic<std::uint64_t> room_bytes;   // of the journal
  std::atomic<std::uint64_t> used_bytes;   // what a crash now would bring home, at most
  std::atomic<std::uint64_t> batches;      // written
  std::atomic<std::uint64_t> batch_bytes;  // in them
  std::atomic<std::uint64_t> batch_ns;     // that they took
  std::atomic<std::uint64_t> asked;        // requests
  std::atomic<std::uint64_t> logged;       // whose pages went into the journal
  std::atomic<std::uint64_t> synced;       // for which home was synced
  std::atomic<std::uint64_t> files_live;   // files that have something in the journal
  std::atomic<std::uint64_t> checkpoints;  // ended
  std::atomic<std::uint64_t> voids;        // generations ended because a program went without us
  std::atomic<std::uint64_t> areas;        // jobs served
  std::atomic<std::uint64_t> log_error;    // errno: the journal cannot be written
  std::atomic<std::uint64_t> home_error;   // errno: a disk refused what the journal has
  std::atomic<std::uint64_t> refused;      // 1: it could not be recovered, and nobody serves it
  std::atomic<std::uint64_t> kept_logs;    // beside it, with what it had of files left as they are
};

static_assert(std::is_standard_layout_v<order_status>);

/// Null when it is one; else what is wrong.
inline char const* refuse_reason(order_status const& s, std::uint64_t bytes) {
  if (bytes < sizeof(order_status)) return "too short";
  if (s.magic_word.load(std::memory_order_acquire) != order_status_magic) return "not a journal's";
  if (s.layout != order_status_layout || s.total_bytes != sizeof(order_status))
    return "another version's";
  return nullptr;
}

}  // namespace sluice::abi
