// SPDX-License-Identifier: Apache-2.0
// Cluster epochs: a file `after` beside the segment of a job that has a target with "after" in its
// policy. A stage that is about to change a name like `write` (a manifest) asks here first, and
// goes on when all changes of the job on all nodes are durable. Before it first changes a name like
// `durable` it makes sure that the cluster knows of this node. The node's daemon answers. Must stay
// true: silence never counts as safe. A stage goes on only with a result 0 that it swapped free
// itself; everything else is an error of the call.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "core/glob.h"
#include "core/ruleset.h"

namespace sluice::abi {

inline constexpr std::uint64_t after_magic = 0x3161'6563'6975'6c73ull;  // "sluicea1" in memory
inline constexpr std::uint32_t after_layout_version = 1;
inline constexpr unsigned after_rules = 8;
inline constexpr unsigned after_slots = 64;
inline constexpr unsigned after_glob_bytes = core::most_glob_bytes + 1;
inline constexpr unsigned after_root_bytes = 1024;
inline constexpr unsigned after_reason_words = 16;
inline constexpr unsigned after_waits_words = 4;

/// Whom a stage asks.
enum class after_server : std::uint32_t { nobody, itself, daemon };

/// One target's "after". Texts end with a zero.
struct after_rule {
  std::int64_t patience_ns;
  char write[after_glob_bytes];    // of names, from the target's root on: "/run/MANIFEST-1"
  char durable[after_glob_bytes];  //
  char root[after_root_bytes];     // what is synced
};

enum class after_state : std::uint32_t { free, claimed, posted, taken, done, abandoned };

constexpr std::uint32_t word_of(std::uint32_t user, after_state s) {
  return user << 3 | static_cast<std::uint32_t>(s);
}

struct alignas(64) after_slot {
  std::atomic<std::uint32_t> word;      // user << 3 | after_state; the stage's futex
  std::atomic<std::int32_t> result;     // daemon, before `done`: 0 or an error number
  std::atomic<std::uint32_t> pid;       // stage, before `posted`
  std::atomic<std::uint32_t> rule;      // stage, before `posted`
  std::atomic<std::uint64_t> since_ns;  // CLOCK_MONOTONIC; when claimed
  // Daemon; whom it waits for, as text, for people: no stage reads it. Zeros of an older daemon.
  std::atomic<std::uint64_t> waits_for[after_waits_words];
  // Stage, before `posted`; inode of the namespace of `pid`. Of an older stage it says nothing, and
  // an older daemon may write the end of a long text here.
  std::atomic<std::uint64_t> pid_space;
};
static_assert(sizeof(after_slot) == 64);

/// What became of it. Counted by stages, never printed.
enum class after_count : std::uint8_t {
  opened,   // gates that were passed
  refused,  // answered with an error: EIO
  silent,   // no answer: EIO
  unknown,  // a change of data that was not made, for the cluster did not know of this node
  count
};
inline constexpr char const* after_count_names[] = {"opened", "refused", "silent", "unknown"};

struct after_header {
  std::atomic<std::uint64_t> magic_word;  // creator, last
  std::uint32_t layout;                   // creator, as all up to `rule_of`
  std::uint32_t rules;
  std::uint64_t total_bytes;  // size of the file
  std::uint32_t rule_bytes;   // sizeof each record
  std::uint32_t slot_bytes;
  std::uint32_t owner_uid;
  std::uint8_t rule_of[core::max_targets];  // rule + 1 of a target of the ruleset; 0: none

  alignas(64) std::atomic<std::uint32_t> server;  // creator; after_server
  std::atomic<std::uint32_t> known;  // creator, daemon; 1: the cluster knows of this node; futex
  std::atomic<std::uint64_t> book;   // daemon; which of the cluster's memories; see cluster/
  std::atomic<std::uint64_t> count[static_cast<unsigned>(after_count::count)];
  std::atomic<std::uint64_t> waited_ns;                   // stages; at gates
  std::atomic<std::uint64_t> reason[after_reason_words];  // daemon; why it refused last, as text
  std::atomic<std::uint32_t> no_slot;  // stages; gates that found no slot: EIO; beside `count`
};

struct after_area {
  after_header head;
  after_rule rule[after_rules];
  after_slot slot[after_slots];
};
static_assert(std::is_standard_layout_v<after_area>);

/// Text in words that are atomic one by one: a reader may find a mixture, and then shows that.
template <unsigned Words>
void put_text(std::atomic<std::uint64_t> (&to)[Words], char const* text, std::size_t length) {
  std::uint64_t words[Words] = {};
  __builtin_memcpy(words, text, length < sizeof words ? length : sizeof words - 1);
  for (unsigned i = 0; i < Words; ++i) to[i].store(words[i]);
}

/// Null when this is an area of our layout; else what is wrong.
inline char const* refuse_reason(after_area const& a, std::uint64_t bytes) {
  if (bytes < sizeof(after_area)) return "too short";
  if (a.head.magic_word.load(std::memory_order_acquire) != after_magic)
    return "not an area of epochs";
  if (a.head.layout != after_layout_version) return "another layout version";
  if (a.head.total_bytes != sizeof(after_area)) return "another size";
  if (a.head.rule_bytes != sizeof(after_rule) || a.head.slot_bytes != sizeof(after_slot))
    return "other record sizes";
  if (a.head.rules == 0 || a.head.rules > after_rules) return "no number of rules";
  return nullptr;
}

}  // namespace sluice::abi
