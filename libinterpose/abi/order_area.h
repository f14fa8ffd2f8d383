// SPDX-License-Identifier: Apache-2.0
// The memory that stages and the journal's daemon share for durable targets: a file `order` beside
// the job's segment. A stage copies no data. It says which pages of which inode were written, and
// asks for an fsync; the daemon reads the pages from the file itself, writes them into the journal
// and answers. abi/README.md has the writer of each word and the order of steps on both sides. Must
// stay true: every word is one atomic, nobody holds anything, so a process may be killed anywhere.
// The rest that a kill leaves makes fsync slower, never less than fsync.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include "core/page_ranges.h"
#include "core/path_text.h"
#include "core/ruleset.h"

namespace sluice::abi {

inline constexpr std::uint64_t order_magic = 0x316f'6563'6975'6c73ull;  // "sluiceo1" in memory
inline constexpr std::uint32_t order_layout_version = 6;
inline constexpr unsigned order_sets = 512;
inline constexpr unsigned order_ways = 16;
inline constexpr unsigned order_given_up = 7;
inline constexpr unsigned order_devices = 64;
inline constexpr unsigned order_slots = 256;
inline constexpr unsigned order_count_slots = 16;
inline constexpr unsigned order_path_bytes = 1024;
inline constexpr unsigned order_log_devices = 8;
inline constexpr std::int64_t order_silence_ns = 250'000'000;  // then a stage goes on without it

/// Flags of an inode: the low half of `state`. The high half counts stages inside a fallback.
inline constexpr std::uint64_t order_native = 1;  // stages; fsync is native until a drain is done
inline constexpr std::uint64_t order_bypass = 2;  // stages; for good: mapped, O_DIRECT, aio …
inline constexpr std::uint64_t order_unlogged = order_native | order_bypass;  // either
inline constexpr std::uint64_t order_whole = 4;   // stages; pages unknown: taken with the ranges
inline constexpr std::uint64_t order_logged = 8;  // daemon; the journal may hold live records of it
inline constexpr std::uint64_t order_marked = 16;  // stages; the file bears a mark
inline constexpr std::uint64_t order_lone = 32;    // daemon; see daemon_word
inline constexpr std::uint64_t order_apart = 64;   // stages; bypass, and the drain after it is over
inline constexpr std::uint64_t order_moved = 128;  // stages; renamed or linked since taken
inline constexpr std::uint64_t order_own = 256;  // daemon; while it is not logged its syncs are the
                                                 // program's own. Of a directory: the first of
                                                 // files that are made in it as well
inline constexpr std::uint64_t order_watched = 512;  // daemon; what is written is to be noted
inline constexpr std::uint64_t order_fallback_one = std::uint64_t{1} << 32;

/// `voided` of an area: the low bits count stages that are at it. While it is not 0 the daemon
/// acknowledges nothing of this area; a daemon that is new, or begins anew, makes it 0.
inline constexpr std::uint32_t order_void = 1u << 31;
inline constexpr std::uint32_t order_void_done = 1u << 30;    // all of the journal is safe at home
inline constexpr std::uint32_t order_void_failed = 1u << 29;  // it could not be said: not again

constexpr std::uint64_t fallbacks_of(std::uint64_t state) { return state >> 32; }

/// One inode of which something was noted.
struct order_inode {
  std::atomic<std::uint64_t> state;
  std::atomic<std::uint64_t> cut;  // stages; smallest size it was cut to since taken, + 1; 0 none
  std::atomic<std::uint64_t> created;      // stages; birth_word() of the file that an open made; 0
  std::atomic<std::uint64_t> daemon_word;  // daemon; with `lone`, `own`: the lone_word() of what is
                                           // durable, as long as nobody has synced another
  core::page_ranges written;               // stages; taken by the daemon
};
static_assert(sizeof(order_inode) % 64 == 0);

inline constexpr std::uint64_t no_key = 0;
inline constexpr std::uint64_t busy_key = ~std::uint64_t{0};  // the daemon is giving the place back

struct alignas(64) order_set {
  std::atomic<std::uint64_t> key[order_ways];  // see order_key; 0 free
  std::atomic<std::uint32_t> overflow;  // stages; 1, for good: all inodes of this set are native
  std::uint32_t unused;
  std::atomic<std::uint64_t> given_up[order_given_up];  // stages; see given_up()
  order_inode way[order_ways];
};

enum class order_request : std::uint32_t {
  fsync,      // of a file
  fdatasync,  // of a file
  directory,  // fsync of a directory
  drain,  // nothing of this inode may be live in the journal any more; it is about to be bypassed
  sync_all,  // the same for every inode of this area
  notify,    // fd is an eventfd: to be told when the barrier of slot `device` and user `inode` is
             // not under way any more. With order_barrier: held until then
};

/// state of a slot: low 3 bits of `word`; the rest counts its users.
enum class order_slot_state : std::uint32_t { free, claimed, posted, taken, done, abandoned, held };

constexpr std::uint32_t word_of(std::uint32_t user, order_slot_state s) {
  return user << 3 | static_cast<std::uint32_t>(s);
}

/// `result` besides 0 and error numbers: the daemon did nothing and took nothing.
inline constexpr std::int32_t go_native = -1;
/// Any program of the user may have written it: what is no errno means the same.
constexpr bool means_native(std::int32_t result) { return result < 0 || result > 4095; }

/// In `kind`: a barrier. Its stage does not wait; when all is durable the daemon frees the slot. So
/// who finds it free, or another's, knows that, unless the area's `unsure` has moved since.
inline constexpr std::uint32_t order_barrier = 1u << 31;
/// The word of one who wants to be told of a barrier has the bit, too, and is none.
constexpr bool is_barrier(std::uint32_t kind) {
  return (kind & order_barrier) != 0 &&
         static_cast<order_request>(kind & ~order_barrier) != order_request::notify;
}
inline constexpr std::uint32_t order_wake_eager = 2;  // futex bits of who waits for `held` only

/// `stream` of a barrier: which changes wait for it. Of a process and its threads by name, they are
/// that process's; a tree's (+ target) and the job's are everybody's.
inline constexpr std::uint32_t stream_process = 0, stream_path = 1, stream_job = 64;
inline constexpr std::uint32_t stream_thread = 128;  // + a hash of the name
constexpr bool is_shared(std::uint32_t stream) {
  return stream >= stream_path && stream <= stream_job;
}

struct alignas(64) order_slot {
  std::atomic<std::uint32_t> word;  // user << 3 | order_slot_state; the stage's futex
  std::atomic<std::uint32_t> kind;  // order_request, and order_barrier
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint32_t> tid;
  std::atomic<std::int32_t> fd;         // of that process; -1: none (sync_all)
  std::atomic<std::int32_t> result;     // daemon, before `done`
  std::atomic<std::uint64_t> device;    // what the stage saw behind fd: major << 32 | minor
  std::atomic<std::uint64_t> inode;     //
  std::atomic<std::uint64_t> since_ns;  // CLOCK_MONOTONIC; when claimed
  std::atomic<std::uint32_t> eager;     // stages; 1: somebody waits until it is held
  std::atomic<std::uint32_t> stream;    // of a barrier
};

/// What a fallback writes on the file: user.sluice.order. Records of this journal of that
/// generation or an older one are not to be replayed for the file, nor creations in the directory,
/// that bears it; on the journal itself: none of them. It says whose it is, for it may be copied to
/// other files.
struct order_mark {
  std::uint8_t log_id[16];
  std::uint64_t generation;
  std::uint64_t incarnation;
  std::uint64_t inode;
  std::uint64_t birth;  // birth_word()
};
inline constexpr char order_mark_name[] = "user.sluice.order";

/// What became of requests, and why some were not made. Counted, never printed.
enum class order_count : std::uint8_t {
  answered,     // by the daemon: logged or made durable by it
  sent_back,    // go_native
  absent,       // no daemon, or its heart had stopped before
  silent,       // it stopped while we waited
  no_slot,      // all slots taken
  bypassed,     // the inode is native for good
  marked,       // a mark was set
  mark_failed,  // and could not be: see the limits in daemon/journal/README.md
  unnoted,      // no place for the inode
  alone,        // a sync that was the program's own; see order_lone, order_own
  barriers,     // an fsync that did not wait
  gated,        // a change that waited for one
  own_sync,     // a write that its descriptor's O_SYNC or O_DSYNC made the kernel sync
  mapped,       // an msync that waited for the disk
  ranges,       // a sync_file_range that had to wait for the journal
  count
};
static_assert(static_cast<unsigned>(order_count::count) <= order_count_slots);

inline constexpr char const* order_count_names[] = {
    "answered", "sent_back", "absent",   "silent", "no_slot",  "bypassed", "marked", "mark_failed",
    "unnoted",  "alone",     "barriers", "gated",  "own_sync", "mapped",   "ranges"};
static_assert(sizeof order_count_names / sizeof *order_count_names ==
              static_cast<unsigned>(order_count::count));

/// What the daemon says of this area, for people (`sluice order`). No stage reads it. It lies where
/// there were zeros, so of an older daemon there are zeros here.
struct order_said {
  std::atomic<std::uint64_t> logged;         // requests whose pages went into the journal
  std::atomic<std::uint64_t> synced;         // requests for which home was synced
  std::atomic<std::uint64_t> is_in_journal;  // 1: the journal has something of them
};

struct order_header {
  std::atomic<std::uint64_t> magic_word;  // creator, last
  std::uint32_t layout;                   // creator
  std::uint32_t durable_targets;          // creator; bit t: target t of the segment's ruleset
  std::uint64_t total_bytes;              // creator; size of the file
  std::uint32_t set_bytes;                // creator; sizeof each record
  std::uint32_t slot_bytes;
  std::uint32_t owner_uid;
  std::uint32_t ordered_targets;      // creator; those of them where fsync is a barrier
  std::atomic<std::uint32_t> unsure;  // +1 before a barrier's slot is freed that is not durable
  std::atomic<std::uint32_t> failed;  // +1 before, where that was an error
  std::uint32_t job_streams;          // creator; targets whose stream is the job, the thread's
  std::uint32_t thread_streams;       // name, the target's own tree; else the process
  std::uint32_t path_streams;

  alignas(64) std::atomic<std::uint64_t> incarnation;  // daemon, last; 0: none is there
  std::atomic<std::uint64_t> heart_ns;                 // daemon; CLOCK_MONOTONIC
  std::atomic<std::uint64_t> generation;               // daemon; of its journal
  std::uint8_t log_id[16];                             // daemon, before incarnation
  std::atomic<std::uint32_t> unwatched;  // daemon; 1: it holds no file, nothing is to be noted
  std::uint32_t unused;                  // 0

  alignas(64) std::atomic<std::uint32_t> doorbell;  // stages; +1 after each post: daemon's futex
  std::atomic<std::uint32_t> dozing;                // daemon; 1 while it wants to be woken
  std::atomic<std::uint64_t> posted;           // stages; +1 after each barrier of a shared stream
  std::atomic<std::uint32_t> own_directories;  // daemon; 1: some bear order_own

  alignas(64) std::atomic<std::uint32_t> blind;  // stages; a process went where we do not see: all
                                                 // inodes are native from then on
  std::atomic<std::uint32_t> lone;               // stages; how many are inside a lone fdatasync
  std::atomic<std::uint64_t> count[order_count_slots];
  std::atomic<std::uint64_t> device[order_devices];  // whoever meets one first; 0 free
  std::atomic<std::uint32_t> voided;                 // stages; the daemon takes it back
  std::atomic<std::uint32_t>
      refused;  // whoever is told; errno: home lost bytes that the journal has
  std::atomic<std::uint64_t> log_devices[order_log_devices];  // daemon, before it writes one of
                                                              // that device; ~0 in the last: more
  std::uint64_t log_device;         // daemon, before incarnation: the file of the journal
  std::uint64_t log_inode;          //
  char log_path[order_path_bytes];  // from the root; empty: not known
  order_said said;                  // daemon
};

struct order_area {
  order_header head;
  alignas(4096) order_slot slot[order_slots];
  alignas(4096) order_set set[order_sets];
};

static_assert(std::is_standard_layout_v<order_area>);
static_assert(core::max_targets <= 32);

/// Null when the mapping is an area of our layout; else what is wrong.
inline char const* refuse_reason(order_area const& a, std::uint64_t mapped_bytes) {
  if (mapped_bytes < sizeof(order_area)) return "too short";
  if (a.head.magic_word.load(std::memory_order_acquire) != order_magic) return "not an order area";
  if (a.head.layout != order_layout_version) return "another layout version";
  if (a.head.total_bytes != sizeof(order_area)) return "another size";
  if (a.head.set_bytes != sizeof(order_set) || a.head.slot_bytes != sizeof(order_slot))
    return "other record sizes";
  return nullptr;
}

/// Tells files apart that had one inode number after the other. 0: the file system does not say.
constexpr std::uint64_t birth_word(std::uint64_t inode, std::int64_t s, std::uint32_t ns) {
  if (s == 0 && ns == 0) return 0;
  std::uint64_t h = (inode ^ static_cast<std::uint64_t>(s) << 30 ^ ns) * 0x9e3779b97f4a7c15ull;
  h ^= h >> 29;
  return h * 0xbf58476d1ce4e5b9ull | 1;
}

/// What an overwrite of bytes that were there leaves as it is.
struct lone_facts {
  std::uint64_t size;
  std::uint32_t mode, uid, gid, links;
};
/// 16 bits of the size, which an fdatasync keeps too, and below them 48 of all else. Never 0.
constexpr std::uint64_t lone_word(lone_facts const& f) {
  constexpr auto mix = [](std::uint64_t h, std::uint64_t word) {
    h = (h ^ word) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
  };
  std::uint64_t const rest =
      mix(mix(0, std::uint64_t{f.mode} << 32 | f.links), std::uint64_t{f.uid} << 32 | f.gid);
  return mix(0, f.size) >> 48 << 48 | rest >> 16 | 1;
}
/// But for the size they say the same.
/// Two sizes may have the same bits. Then the sync is an fdatasync, and that
/// keeps a size.
constexpr bool differ_in_size(std::uint64_t a, std::uint64_t b) { return (a ^ b) << 16 == 0; }

/// One word for an inode: index of its device + 1, then 56 bits of its number. 0: it has none.
inline std::uint64_t order_key(order_area& a, std::uint64_t device, std::uint64_t inode) {
  if (device == 0 || inode == 0 || inode >> 56 != 0) return no_key;
  for (std::uint64_t i = 0; i < order_devices; ++i) {
    std::uint64_t seen = a.head.device[i].load(std::memory_order_relaxed);
    if (seen == 0) a.head.device[i].compare_exchange_strong(seen, device);
    if (seen == 0 || seen == device) return (i + 1) << 56 | inode;
  }
  return no_key;
}

inline order_set& set_of(order_area& a, std::uint64_t key) {
  std::uint64_t h = key * 0x9e3779b97f4a7c15ull;
  return a.set[(h ^ h >> 32) % order_sets];
}

/// Calls each(way) for every place of the inode: two may have claimed one at once, and then what is
/// known of it is what they say together.
template <class Each>
void each_way(order_set& s, std::uint64_t key, Each&& each) {
  for (unsigned w = 0; w < order_ways; ++w)
    if (s.key[w].load() == key) each(w);
}

/// A place of the inode, claimed if there is none; order_ways when all are taken by others.
inline unsigned find_or_claim(order_set& s, std::uint64_t key) {
  for (unsigned w = 0; w < order_ways; ++w)
    if (s.key[w].load() == key) return w;
  for (unsigned w = 0; w < order_ways; ++w) {
    std::uint64_t seen = no_key;
    if (s.key[w].load(std::memory_order_relaxed) != no_key) continue;
    if (s.key[w].compare_exchange_strong(seen, key) || seen == key) return w;
  }
  return order_ways;
}

/// Does what `note(order_inode&)` does to a place that is the inode's before and after. False: no
/// place, so the daemon has no baseline of it, and its next fsync is native.
template <class Note>
bool note_inode(order_set& s, std::uint64_t key, Note&& note) {
  for (unsigned round = 0; round < 16; ++round) {
    unsigned const w = find_or_claim(s, key);
    if (w == order_ways) return false;
    note(s.way[w]);
    if (s.key[w].load() == key) return true;  // else it was given back meanwhile
  }
  s.overflow.store(1);
  return false;
}

/// Of files that lost such a name through a stage, in any directory, the latest ctime of then, in
/// ns. Shared by names that hash alike.
inline std::atomic<std::uint64_t>& given_up(order_area& a, std::string_view name) {
  std::uint64_t const h = core::hash_of(name.data(), static_cast<unsigned>(name.size()));
  return a.set[h % order_sets].given_up[h / order_sets % order_given_up];
}

/// All flags of an inode, those of the set and of the area among them.
inline std::uint64_t state_of(order_area& a, order_set& s, std::uint64_t key) {
  std::uint64_t state = 0;
  each_way(s, key, [&](unsigned w) { state |= s.way[w].state.load() & 0xffffffff; });
  if (s.overflow.load() != 0 || a.head.blind.load() != 0 || a.head.voided.load() != 0)
    state |= order_bypass;
  return state;
}

/// What is written to it is to be noted. Asked before a write and after it: what the daemon began
/// to hold in between it perhaps read before the write.
inline bool is_watched(order_area& a, std::uint64_t key) {
  return key != no_key && (state_of(a, set_of(a, key), key) & order_watched) != 0;
}

}  // namespace sluice::abi
