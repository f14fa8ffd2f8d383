// SPDX-License-Identifier: Apache-2.0
// The directories that a job's calls used: a file `paths` beside the segment of a job that was
// asked to note them (`sluice run --paths`). Every stage of the job writes, `sluice run` reads at
// the end. Garbage in it is harmless: a stage follows nothing that it finds there, and a reader
// believes a slot only when its text and its key agree. See core/path_sketch.h for what stays true.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "core/path_head.h"
#include "core/path_sketch.h"

namespace sluice::abi {

inline constexpr std::uint64_t paths_magic = 0x3170'6563'6975'6c73ull;  // "sluicep1" in memory
inline constexpr std::uint32_t paths_layout_version = 2;
inline constexpr unsigned path_slots = 512;

struct path_header {
  std::atomic<std::uint64_t> magic_word;  // creator, last
  std::uint32_t layout;                   // creator
  std::uint32_t parts;                    // creator; of a directory's name that are kept
  std::uint64_t total_bytes;              // creator; size of the file
  std::uint32_t slots;                    // creator
  std::uint32_t row_bytes;                // creator; sizeof each record
  std::uint32_t owner_uid;
  std::uint32_t unused;
  // Stages; counted calls of which nobody knows where they went: the kernel did not say, or no slot
  // could be taken.
  alignas(64) std::atomic<std::uint64_t> unnamed;
};

struct path_area {
  path_header head;
  alignas(4096) core::path_sketch<path_slots> sketch;
};

static_assert(std::is_standard_layout_v<path_area>);

/// Null when this is an area of our layout; else what is wrong.
inline char const* refuse_reason(path_area const& a, std::uint64_t bytes) {
  if (bytes < sizeof(path_area)) return "too short";
  if (a.head.magic_word.load(std::memory_order_acquire) != paths_magic)
    return "not an area of paths";
  if (a.head.layout != paths_layout_version) return "another layout version";
  if (a.head.total_bytes != sizeof(path_area)) return "another size";
  if (a.head.slots != path_slots || a.head.row_bytes != sizeof(core::sketch_row))
    return "other record sizes";
  if (a.head.parts == 0 || a.head.parts > core::most_head_parts) return "no number of parts";
  return nullptr;
}

}  // namespace sluice::abi
