// SPDX-License-Identifier: Apache-2.0
// What the requests of a job are for: a file `roles` beside the segment of a job whose policy has
// roles. The creator writes the table; each stage takes a copy and validates it. Stages count by
// clause, so that whoever reads it can tell roles, and how their requests were known. Garbage in it
// misleads only the job that wrote it: roles narrow what limits hold, and the limits of the job as
// a whole ask for none.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "core/roles.h"

namespace sluice::abi {

inline constexpr std::uint64_t roles_magic = 0x3172'6563'6975'6c73ull;  // "sluicer1" in memory
inline constexpr std::uint32_t roles_layout_version = 1;
inline constexpr unsigned role_shards = 16;  // threads count in that of their number
inline constexpr unsigned maker_ways = 8;    // places where one file's maker may be noted
inline constexpr unsigned maker_slots = 16384;

struct role_header {
  std::atomic<std::uint64_t> magic_word;  // creator, last
  std::uint32_t layout;                   // creator
  std::uint32_t owner_uid;
  std::uint64_t total_bytes;  // creator; size of the file
  std::uint32_t table_bytes;  // creator; sizeof each record
  std::uint32_t counts_bytes;
  // Stages.
  alignas(64) std::atomic<std::uint64_t> unknown_told;  // a program named a role that is none
  std::atomic<std::uint64_t> unclassed;  // files for which a process had no room left
};

/// What requests of one clause were, counted by threads of one shard.
struct alignas(64) role_counts {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> read_bytes;
  std::atomic<std::uint64_t> written_bytes;
  std::atomic<std::uint64_t> delayed;
  std::atomic<std::uint64_t> waited_ns;
};

struct role_area {
  role_header head;
  alignas(64) core::role_table table;
  alignas(4096) role_counts count[role_shards][core::max_clauses + 1];  // the last: of no role
  // Which role made a file: the high 56 bits tell the file (device, inode, birth), the low byte is
  // the role + 1. Stages; old ones are overwritten.
  alignas(4096) std::atomic<std::uint64_t> maker[maker_slots];
};

static_assert(std::is_standard_layout_v<role_area>);

/// Null when this is an area of our layout; else what is wrong. Says nothing of the table: look at
/// a copy of it.
inline char const* refuse_reason(role_area const& a, std::uint64_t bytes) {
  if (bytes < sizeof(role_area)) return "too short";
  if (a.head.magic_word.load(std::memory_order_acquire) != roles_magic)
    return "not an area of roles";
  if (a.head.layout != roles_layout_version) return "another layout version";
  if (a.head.total_bytes != sizeof(role_area)) return "another size";
  if (a.head.table_bytes != sizeof(core::role_table) || a.head.counts_bytes != sizeof(role_counts))
    return "other record sizes";
  return nullptr;
}

}  // namespace sluice::abi
