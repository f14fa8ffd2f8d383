// SPDX-License-Identifier: Apache-2.0
//
// The segment: one file of shared memory per job and node. The creator (`sluice run`, later the
// node daemon) lays it out; every process of the job maps it. See abi/README.md for the drawing and
// the attach states.
//
//   0        header        version word first; sizes of all regions
//   +        shard owners  which thread has which shard
//   +        near processes  the slots that a stage tries first
//   +        buckets       one per channel: the token bucket (writers: every stage; curves: owner)
//   +        ruleset       written once by the creator, before state = ready
//   +        far processes  one slot per process: who is attached (writer: that process; reclaimer)
//   +        channels      one per channel: wait histogram, shared and slow path only
//   +        times         per target how much the real calls moved, of a sample; per target and op
//                          how long they took
//   +        read leases   the board of small reads: see lease_board.h
//   +        shards        counters; a shard is written by the one thread that owns it
//   +        common shards written by threads that found no free shard, with atomic adds
//
// A process that starts pays for each page it touches, and so does a child of fork. The kernel maps
// 64 KiB at once where the file lies in memory: what a start and a first call need lies in the
// first 64 KiB, but for the shard. Elsewhere each page that is written is paid for: who joins
// writes the first one, and its shard.
//
// Trust: the file is 0600 in a 0700 directory, but a bug in any process of the job may scribble
// over it, so a stage validates sizes and the ruleset once, copies nothing back into decisions it
// cannot bound, and never follows an offset found here at run time. Layout changes raise
// `layout_version`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "abi/lease_board.h"
#include "core/histogram.h"
#include "core/request.h"
#include "core/ruleset.h"
#include "core/token_bucket.h"

namespace sluice::abi {

inline constexpr std::uint64_t magic = 0x3165'6369'756c'73ull;  // "sluice1" in memory order
inline constexpr std::uint32_t layout_version = 15;
inline constexpr unsigned process_slots = 4096;
inline constexpr unsigned near_slots = 26;  // tried first: they lie on the header's page
inline constexpr unsigned far_slots = process_slots - near_slots;
inline constexpr unsigned owned_shards = 256;
inline constexpr unsigned common_shards = 16;
inline constexpr unsigned max_calls = 256;  // rows of calls.def that are counted, with room to grow
inline constexpr unsigned reason_slots = 16;

enum class segment_state : std::uint32_t { building = 0, ready = 1, closed = 2 };

/// Why a call went through uncharged although it might have been ours. Counted, never printed.
enum class passthrough : std::uint8_t {
  sandboxed,         // the program entered a seccomp sandbox: no futex, no statx
  vfork_child,       // between vfork and exec nothing of the parent may be touched
  lease_over,        // the curve's lease ended and the policy is `open`
  not_ours,          // a waiter found that its fd had become another file
  no_slot,           // no process slot was free
  damaged,           // the segment no longer looks like one: detached
  nested,            // re-entered from a signal handler while attaching
  exec_environment,  // the environment of an exec was too large to carry us along
  ring,              // io_uring_enter through syscall(2): what it submits is not seen
  foreign_thread,    // its thread memory is none that libc has set up: see join_thread()
  other_user,        // starts of programs as somebody who may not open the segment
  other_clock,       // it would have waited, by the clock of another time namespace
  count
};
static_assert(static_cast<unsigned>(passthrough::count) <= reason_slots);

inline constexpr char const* passthrough_names[] = {
    "sandboxed", "vfork_child",      "lease_over", "not_ours",       "no_slot",    "damaged",
    "nested",    "exec_environment", "ring",       "foreign_thread", "other_user", "other_clock"};
static_assert(sizeof passthrough_names / sizeof *passthrough_names ==
              static_cast<unsigned>(passthrough::count));

struct header {
  std::atomic<std::uint64_t> magic_word;  // creator; 0 until laid out
  std::uint32_t layout;                   // creator; layout_version
  std::atomic<std::uint32_t> state;       // creator; segment_state
  std::uint64_t total_bytes;              // creator; size of the file
  std::uint32_t ruleset_bytes;  // creator; sizeof each record: a reader compares with its own
  std::uint32_t bucket_bytes;
  std::uint32_t shard_bytes;
  std::uint32_t slot_bytes;
  std::uint64_t created_ns;      // creator; CLOCK_MONOTONIC
  std::uint64_t created_unix_s;  // creator; for people
  // The creator, or who asked last to join, see holder_word(): while it is alive, so is the job.
  std::atomic<std::uint64_t> holder;
  std::uint32_t owner_uid;
  std::atomic<std::uint32_t>
      attached;  // stages; processes attached now (a hint: kills leave it high)
  std::atomic<std::uint32_t> attached_total;  // stages; processes ever attached
  std::atomic<std::uint32_t> threads;         // stages; owned shards claimed now, divides leases
  std::atomic<std::uint32_t> shards_used;  // stages; owned shards ever claimed: readers stop here
  std::uint32_t is_in_memory;              // creator; 1: the file lies on a tmpfs
  std::uint64_t limits_hash;               // creator; equal for equal rulesets: joining compares it
  std::atomic<std::uint64_t> passthrough_calls[reason_slots];  // stages; by reason
  char job[128];                                               // creator; zero-terminated name
  std::atomic<std::uint32_t> areas;         // who makes one beside the segment, then; mask of area
  std::atomic<std::uint32_t> commons_used;  // stages; 0: nobody counts in the common shards
  std::atomic<std::uint64_t> proc_shows;    // the first stage; see shown_by()
  std::uint32_t hinted_targets;             // creator; bit t: in target t the kernel gets hints
  std::uint32_t gathered_targets;           // creator; bit t: it is close-to-open
};

/// Files that may lie beside a segment: a stage opens those that are told.
enum area : std::uint32_t {
  order_beside = 1,
  after_beside = 2,
  paths_beside = 4,
  roles_beside = 8,
  hints_beside = 16,   // no file: see header::hinted_targets
  gather_beside = 32,  // no file: see header::gathered_targets and the boards of leases
  rings_beside = 64
};

/// Which pid namespace a /proc shows, as one word: the low half of its device (the high half is 0),
/// and the inode of the namespace. 0: not told. The kernel makes a file to tell the inode, which
/// costs more than all else a process does to join.
constexpr std::uint64_t shown_by(std::uint64_t proc_device, std::uint64_t pid_space) {
  return proc_device >> 32 != 0 || pid_space >> 32 != 0 ? 0 : proc_device << 32 | pid_space;
}

/// A stage does not read the start of its process in /proc either: it says that it was not after
/// now. A process that gets the same number later starts later.
inline constexpr std::uint64_t not_after = std::uint64_t{1} << 63;
/// What /proc/PID/stat calls the start of a process that begins at `boot_ns` (CLOCK_BOOTTIME).
constexpr std::uint64_t ticks_of(std::int64_t boot_ns) {
  constexpr std::int64_t ns_per_tick = 10'000'000;  // USER_HZ is 100 wherever we run
  return static_cast<std::uint64_t>(boot_ns / ns_per_tick);
}
/// `claimed` is a slot's start_ticks, `found` what /proc says of a process of that number.
constexpr bool is_start(std::uint64_t claimed, std::uint64_t found) {
  if ((claimed & not_after) != 0) return found <= (claimed & ~not_after);
  return claimed == 0 || claimed == found;
}

/// A process as one word: its pid, and above it the low half of its start, which is 0 where only a
/// bound of it is known. 0: nobody.
constexpr std::uint64_t holder_word(std::uint32_t pid, std::uint64_t start_ticks) {
  return ((start_ticks & not_after) != 0 ? 0 : start_ticks << 32) | pid;
}
/// `found` is the start of a process of that number, 0 where there is none.
constexpr bool is_holder(std::uint64_t word, std::uint64_t found) {
  return word != 0 && found != 0 && (word >> 32 == 0 || word >> 32 == (found & 0xffffffff));
}

/// One process of the job. Claimed by compare-and-swap of `pid` from 0.
struct alignas(64) process_slot {
  std::atomic<std::uint32_t> pid;  // the process, in its own pid namespace; 0 free
  std::atomic<std::uint32_t> uid;
  std::atomic<std::uint64_t> pid_space;  // inode of its pid namespace: pids of others mean nothing
  std::atomic<std::uint64_t> start_ticks;  // see is_start(); with pid an identity
  std::uint64_t unused;
  std::atomic<std::uint32_t> state;  // 1 attached, 2 sandboxed, 3 detached (damaged segment)
  char name[20];                     // thread name of the leader at attach, for people
};

/// Counters of one interposed call. Cumulative; kept when the shard changes owner.
struct alignas(64) call_counters {
  std::atomic<std::uint64_t> calls;      // calls on controlled targets
  std::atomic<std::uint64_t> errors;     // of these, those that failed
  std::atomic<std::uint64_t> bytes;      // moved
  std::atomic<std::uint64_t> delayed;    // calls that slept
  std::atomic<std::uint64_t> waited_ns;  // time slept
};

/// What a thread has of one channel, on one line: it is read and written by every call that meets
/// it.
struct alignas(64) channel_counters {
  core::lease lease;  // tokens set aside by the shard's owner
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t>
      amount;  // bytes or milli-VOPs booked, less refunds; an op channel's amount is its calls
  std::atomic<std::uint64_t> delayed;
  std::atomic<std::uint64_t> waited_ns;
};

/// Who waits now, for explain and for giving back what somebody had booked who is gone. In a common
/// shard: one of those who wait.
struct waiter {
  std::atomic<std::uint32_t> channel;  // channel + 1; 0 nobody waits; see may_have_left
  std::atomic<std::uint32_t> tid;
  std::atomic<std::uint64_t> since_ns;  // CLOCK_MONOTONIC
  std::atomic<std::uint64_t> ticket;    // bucket units
  std::atomic<std::uint64_t> amount;    // bucket units
  std::atomic<std::uint32_t> call;      // see is_made
  std::atomic<std::uint32_t> slot;      // process slot + 1; 0 not known

  /// With the channel: its thread looks whether it was cancelled, and shows itself anew if not.
  static constexpr std::uint32_t may_have_left = 1u << 31;
  /// With the call: it has been made already, so what was booked for it is owed.
  static constexpr std::uint32_t is_made = 1u << 31;
};

/// Counters of one thread. Single writer while owned, so plain adds; common shards use atomic adds.
struct alignas(4096) shard {
  waiter waiting;
  channel_counters channel[core::max_channels];
  call_counters call[max_calls];
};

struct alignas(64) channel_state {
  core::histogram waits;  // ns slept, per delayed request
  // Of a channel that only counts: what its limit would have done (core/would_wait.h).
  core::histogram spared;                   // ns, per request that would have been delayed
  std::atomic<std::uint64_t> spared_calls;  // also those of a rate of 0, for which there is no time
  std::atomic<std::uint64_t> spared_ns;
  std::atomic<std::int64_t> full_until_ns;
};

/// The calls of one op on one target, without what they waited here. A sample stands for several
/// calls: those that went by unmeasured, and itself.
struct alignas(64) call_time {
  core::histogram took;                // ns, each sample as often as the calls it stands for
  std::atomic<std::uint64_t> took_ns;  // the same, as a sum
  std::atomic<std::uint64_t> samples;
};

/// How much reads and writes moved, of the same sample: [0] nothing, [i] below 2^i bytes.
inline constexpr unsigned size_steps = 40;
struct access_sizes {
  std::atomic<std::uint64_t> read[size_steps], written[size_steps];
};

/// What came of small I/O: the counters of small.def.
enum class hint : unsigned {
#define HINT(name) name,
#include "small.def"
  count
};
inline constexpr auto hint_counts = static_cast<unsigned>(hint::count);

enum class gather : unsigned {
#define GATHER(name) name,
#include "small.def"
  count
};
inline constexpr auto gather_counts = static_cast<unsigned>(gather::count);

enum class buffer : unsigned {
#define BUFFER(name) name,
#include "small.def"
  count
};
inline constexpr auto buffer_counts = static_cast<unsigned>(buffer::count);

struct segment {
  header head;
  std::atomic<std::uint64_t> shard_owner[owned_shards];  // (process slot + 1) << 32 | tid; 0 free
  process_slot near_process[near_slots];
  alignas(64) core::bucket bucket[core::max_channels];
  alignas(64) core::ruleset rules;  // its texts, which come last, are short as a rule
  process_slot far_process[far_slots];
  channel_state channel[core::max_channels];
  access_sizes size[core::max_targets];
  alignas(64) std::atomic<std::uint64_t> hint[hint_counts];  // stages; of abi::hint
  std::atomic<std::uint64_t> gather[gather_counts];          // stages; of abi::gather
  std::atomic<std::uint64_t> buffer[buffer_counts];          // stages; of abi::buffer
  lease_board<read_leases> reads;
  call_time time[core::max_targets][core::op_count];
  shard owned[owned_shards];
  shard common[common_shards];
};

static_assert(std::is_standard_layout_v<segment>);
static_assert(offsetof(segment, bucket) <= 4096);
static_assert(offsetof(segment, rules) + offsetof(core::ruleset, strings) + 4096 <= 64 << 10);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Small writes of its jobs may wait in memory.
template <class Segment>
bool may_gather(Segment const& s) {
  return s.head.gathered_targets != 0 || (s.head.areas.load() & rings_beside) != 0;
}

/// The slot of a number below process_slots.
template <class Segment>
auto& process_of(Segment& s, unsigned number) {
  return number < near_slots ? s.near_process[number] : s.far_process[number - near_slots];
}

/// Null when the head says a ready segment of our layout; else what is wrong. `mapped_bytes` is the
/// size of the file, `head` may be garbage but must be readable. Says nothing of the ruleset: who
/// reads another user's segment looks at a copy of that, for it may change under his eyes.
inline char const* refuse_head(segment const& s, std::uint64_t mapped_bytes) {
  if (mapped_bytes < sizeof(segment)) return "too short";
  if (s.head.magic_word.load(std::memory_order_acquire) != magic) return "not a segment";
  if (s.head.layout != layout_version) return "another layout version";
  if (s.head.total_bytes != sizeof(segment)) return "another size";
  if (s.head.ruleset_bytes != sizeof(core::ruleset) ||
      s.head.bucket_bytes != sizeof(core::bucket) || s.head.shard_bytes != sizeof(shard) ||
      s.head.slot_bytes != sizeof(process_slot))
    return "other record sizes";
  if (s.head.state.load(std::memory_order_acquire) !=
      static_cast<std::uint32_t>(segment_state::ready))
    return "not ready";
  return nullptr;
}

/// Its creator's clock is another one, that of another time namespace: what it says of times would
/// be waited for until the program's own clock comes there.
constexpr bool is_of_another_clock(std::uint64_t created_ns, std::int64_t now_ns) {
  constexpr std::int64_t second_ns = 1'000'000'000;
  return static_cast<std::int64_t>(created_ns) > now_ns + second_ns;
}

/// The same, for those who trust whoever may write the segment; its ruleset is looked at as well.
inline char const* refuse_reason(segment const& s, std::uint64_t mapped_bytes) {
  char const* const why = refuse_head(s, mapped_bytes);
  return why != nullptr ? why : core::validate(s.rules);
}

}  // namespace sluice::abi
