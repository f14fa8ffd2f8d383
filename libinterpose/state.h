// SPDX-License-Identifier: Apache-2.0
// The stage's knowledge about its process and about the calling thread. Two kinds of state only:
// words that are written once at attach and then read, and words one thread owns. There is no lock
// to hold and nothing to undo, so a thread may be killed, cancelled or longjmp away at any
// instruction.
//
//   stage        one per process, in the library's own data; `active` is null until attached
//   private_map  one anonymous mapping: what a call meets, the fd table, the cache of directories
//   fork_page    one page the kernel wipes in a child: how fork is noticed without a system call.
//                What a child has of its own lies there too: it copies no page of its parent
//   thread_state initial-exec TLS; its first line is what every call asks
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "abi/segment.h"
#include "core/path_text.h"
#include "core/ruleset.h"
#include "sys.h"

namespace sluice {

inline constexpr unsigned fd_table_size = 1u << 18;  // above it every call asks the kernel
inline constexpr unsigned dir_cache_size = 2048;
inline constexpr unsigned max_path_classes = 256;
inline constexpr unsigned arena_places = 32;
inline constexpr unsigned arena_pages = (64u << 20) / 4096;  // of one of malloc's arenas

/// What is known of one fd: the low five bits a file_kind or first_target + target; 0x20 and 0x40,
/// whether its inode is asked for, or known (order/notes.cc); 0x80 `unverified`; high byte the
/// class of path rules. 0 is unknown.
using fd_entry = std::uint16_t;
inline constexpr unsigned entry_unknown = 0;
inline constexpr unsigned entry_outside = 1;  // never controlled: no file, or a quiet device
inline constexpr unsigned entry_first_target = 2;
inline constexpr unsigned entry_kind_mask = 0x1f;
inline constexpr unsigned entry_inode_asked = 0x20, entry_inode_known = 0x40;
inline constexpr unsigned entry_unverified = 0x80;
inline constexpr unsigned entry_path_shift = 8;

inline constexpr unsigned max_mappings = 64;

struct region;

/// The directory part of the last path a thread named, and its entry. Only that thread comes here,
/// and its signal handlers: `version` is odd while one writes.
struct path_memo {
  std::uint64_t serials;  // of the stage then; 0: nothing here, or being written
  std::atomic<std::uint32_t> version;
  std::uint16_t length;  // of the text, last slash included
  std::uint8_t entry;
  std::int8_t uses_left;  // before the clock is asked again
  region const* where;    // that name lay in (readable.h)
  char text[216];         // is_name_in() reads a block before and behind
  std::uint32_t tick;     // when the kernel was asked
};
inline constexpr unsigned longest_memo = sizeof path_memo::text - core::block_size;

/// A shared writable file mapping of the program.
struct mapping {
  std::atomic<std::uintptr_t> start;  // 0: free or being written
  std::atomic<std::uintptr_t> end;
  std::atomic<std::uint32_t> entry;
};

/// What the channel behind a gate is: the low bits of the gate are its number.
inline constexpr unsigned gate_bytes = 0x40;
inline constexpr unsigned gate_counts = 0x80;  // counts, never delays
inline constexpr unsigned gate_vops = 0x100;
inline constexpr unsigned gate_channel = 0x3f;
static_assert(core::max_channels <= gate_channel + 1);

/// What a call of one op on one kind of entry meets, for all threads alike: at most two gates, in
/// the order to pass them, as what must be looked at to pass them.
enum class planned : std::uint8_t {
  not_ours,  // nobody's business
  count,     // nothing to pass
  gate,      // the gates
  rules,     // the rules have to be looked at
  priced,    // the gates; one counts VOPs
  fixed      // one gate, which counts VOPs, of an op that always costs the same
};
struct gate_plan {
  std::uint16_t counters = 0;  // of the channel, in bytes from the shard's start; 0: no gate
  std::uint16_t curve = 0;     // the number of its curve, in bytes from the first bucket
};
/// By what the gates price a request: numbers of tables + 1, in bytes; 0: they count no VOPs.
struct price_tables {
  std::uint16_t first, second;
};
struct op_plan {
  gate_plan first, second;
  planned what = planned::not_ours;
  bool first_bytes = false, second_bytes = false;
  std::uint8_t unused = 0;
  union {
    price_tables cost = {};
    std::uint32_t units;  // of what is `fixed`
  };
};
static_assert(sizeof(op_plan) == 16);
/// An open that may make its file costs something else, so the plan has a column for it.
inline constexpr auto op_create = static_cast<core::op>(core::op_count);
inline constexpr unsigned plan_columns = core::op_count + 1;
inline constexpr unsigned plan_rows = 32;  // a power of two above any file kind and target
static_assert(entry_first_target + core::max_targets <= plan_rows &&
              plan_rows == entry_kind_mask + 1);

/// What a process remembers. Programs that live a millisecond pay for each page that is touched, so
/// what all of them touch lies together: at the beginning of `plan` and of `rules`, and where `dir`
/// ends and `fd` begins.
struct private_map {
  op_plan plan[plan_rows][plan_columns];  // by file kind or target; written at attach
  alignas(4096) core::ruleset rules;      // a copy: nobody else can change it
  mapping mapped[max_mappings];
  std::atomic<std::uint32_t> next_mapping;
  std::atomic<std::uint64_t> arena_asked[arena_places][arena_pages / 64];  // see readable.h
  // Masks of rules; 0 = free, [0] is not looked at.
  alignas(4096) std::atomic<std::uint64_t> path_class[max_path_classes];
  std::atomic<std::uint64_t> dir[dir_cache_size];  // used from its end; see place.cc
  std::atomic<fd_entry> fd[fd_table_size];
  // Bytes of directory entries since the last block.
  std::atomic<std::uint16_t> dents[fd_table_size];
  char other_preloads[4096];        // LD_PRELOAD without us, once a sandbox was entered
  std::atomic<void*> walks[3][16];  // callbacks of the program, by kind of walk: see walk.cc
  std::atomic<std::uint32_t> walks_under_way;
  std::atomic<bool> serves_files;    // to a file system of its own (FUSE): see place.cc
  std::atomic<bool> below_landlock;  // or has tried to be
  char exec_room[64 << 10];  // for an environment in a sandbox: no page of it is there before

  /// Threads open and close neighbours at the same time, so those lie in different cache lines.
  std::atomic<fd_entry>& entry_of(unsigned of) { return fd[of ^ (of & 31) << 5]; }
};
static_assert(offsetof(private_map, fd) % 4096 == 2048);

/// All zero in a child of fork until it joins.
struct fork_words {
  std::atomic<std::uint64_t> generation;
  std::atomic<std::uint32_t> slot;   // process slot + 1
  std::uint32_t pid;                 // of the process that claimed the slot
  std::atomic<std::uint32_t> forks;  // under way: nobody is to begin to try a sandbox
};

inline constexpr std::uint8_t apart_names = 1, apart_descriptors = 2;
inline constexpr std::uint64_t cwd_step = 1, name_step = std::uint64_t{1} << 32;

/// The first line is what every call asks; after a system call little else is left in the cache.
/// The large tables are elsewhere: it shares a page with the pointers to the real functions.
struct alignas(64) stage_state {
  std::atomic<abi::segment*> active{nullptr};  // null: passthrough, for whatever reason
  private_map* mine = nullptr;
  fork_words* fork_page = nullptr;
  core::bucket const* bucket = nullptr;  // of the segment that was active first
  // Low half: grows with every change of directory; high half: when paths may mean something else.
  std::atomic<std::uint64_t> serials{name_step + cwd_step};
  bool counts_elsewhere = false;
  bool has_path_globs = false;
  bool has_whole_globs = false;
  bool has_callers = false;   // a rule or role asks for thread name or user
  bool has_prices = false;    // a channel counts VOPs
  bool has_measured = false;  // one of them counts what the device does
  bool has_roles = false;
  std::uint8_t first_counted = entry_unknown;  // table entries below it are nobody's business
  std::atomic<std::uint8_t> apart{0};          // what threads have of their own: see apart.h

  std::uint64_t plain_rules = 0;                     // mask of rules without path_glob
  std::uint16_t gate_of_rule[core::max_rules] = {};  // its channel, gate_bytes, gate_counts …
  std::atomic<std::uint32_t> cwd_entry{entry_unknown};
  std::uint32_t generations = 0;  // see next_generation() in join.cc
  bool is_in_memory = false;      // the segment lies on a tmpfs
  std::uint64_t pid_space = 0;    // inode of its pid namespace; 0 unknown
  std::uint64_t proc_device = 0;  // of /proc as this process sees it
  char const* preload = nullptr;  // our own path, as ld.so was given it
  unsigned preload_length = 0;
  std::atomic<std::uint32_t> names_kept{0};     // in the cache of directories
  std::atomic<std::uint32_t> threads_named{0};  // how often a thread was given a name
};

extern stage_state stage __attribute__((visibility("hidden")));

/// `settled` and the four bytes behind it equal the word of the fork page as long as nothing has
/// happened to a thread with counters of its own: no fork, no vfork.
struct alignas(64) thread_state {
  std::uint32_t settled = ~0u;      // `generation`, when the counters are its own
  std::uint8_t is_vfork_child = 0;  // set by vfork.S until exec or exit: the memory is the parent's
  std::uint8_t zero[3] = {};
  abi::shard* counters = nullptr;  // null until joined
  std::int32_t untimed_left = 0;   // calls to go by before one is timed; see times.h
  std::uint16_t untimed = 0;       // how many that were
  std::uint16_t widest_gap = 0;
  path_memo memo = {};             // behind the first words: a short name lies on the same line
  std::uint32_t generation = ~0u;  // of the fork page when joined; else a number it never shows
  bool owned = false;              // counters belong to this thread alone: plain adds
  bool slack_known = false;
  std::uint64_t caller_rules = 0;  // rules that let this thread through
  std::int64_t slack_ns = 0;
  std::uint32_t tid = 0;
  std::uint32_t caller_serial = 0;  // threads_named when caller_rules were found
  std::uint32_t dice = 0;           // see times.h
  std::uint32_t pid = 0;            // of its process when it joined: a child's parent
  // Blocks that its calls have been asked for, as they wrap; see meter.cc.
  std::uint32_t noted_read = 0, noted_written = 0;
};

/// Some thread has names or descriptors of its own, and /proc/self is the first thread.
inline bool is_apart() { return stage.apart.load(std::memory_order_relaxed) != 0; }

extern thread_local constinit thread_state self __asm__("sluice_self")
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
static_assert(sizeof(thread_state) <= 320 && offsetof(thread_state, is_vfork_child) == 4);

/// Adds to a counter that only this thread writes. One instruction on x86, so a signal handler in
/// between loses nothing.
inline void add_own(std::atomic<std::uint64_t>& counter, std::uint64_t n) {
#if defined(__x86_64__)
  __asm__("addq %1, %0" : "+m"(counter) : "er"(n) : "cc");
#else
  counter.fetch_add(n, std::memory_order_relaxed);
#endif
}

/// The same where the shard may be a common one.
inline void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) {
  if (self.owned) [[likely]]
    add_own(counter, n);
  else
    counter.fetch_add(n, std::memory_order_relaxed);
}

void pass_through(abi::passthrough reason);  // counts it

/// A vfork child that has entered a sandbox: its parent has not.
inline constexpr std::uint8_t vfork_child_in_sandbox = 2;
/// Whether the stage may make system calls. A sandbox that the program has entered may kill it for
/// one.
inline bool may_ask() {
  return stage.active.load(std::memory_order_relaxed) != nullptr &&
         self.is_vfork_child != vfork_child_in_sandbox;
}
/// What this program starts may be killed for calls of the stage.
inline bool is_in_sandbox() {
  return sys::is_forbidden.load(std::memory_order_relaxed) ||
         self.is_vfork_child == vfork_child_in_sandbox;
}

/// Whether a start of a program is to be looked at: we are to be in its environment, or out of it.
inline bool minds_starts() {
  return stage.active.load(std::memory_order_relaxed) != nullptr ||
         sys::is_forbidden.load(std::memory_order_relaxed);
}

/// Whether an entry into a sandbox is to be looked at. After one whose filter ends nobody it still
/// is: the next one may, and what is started then is not to have us.
inline bool minds_sandboxes() { return stage.preload != nullptr; }

inline bool joined() {
  return self.generation == stage.fork_page->generation.load(std::memory_order_relaxed) &&
         !self.is_vfork_child;
}
/// Joined, with counters of its own: what nearly every call finds.
inline bool is_settled() {
  std::uint64_t mine;
  __builtin_memcpy(&mine, &self, sizeof mine);
  return mine == stage.fork_page->generation.load(std::memory_order_relaxed);
}

/// Before a page of the segment is written for the first time. Where the file lies in memory, a
/// read lets the kernel map what is around it at once; elsewhere it would be one more page fault.
inline void touch_around(void const* at) {
  if (stage.is_in_memory) __asm__ volatile("" ::"r"(*static_cast<char const volatile*>(at)));
}

/// False, and detached for good, when somebody wrote over the header or closed the segment.
bool still_a_segment(abi::segment const& s);

}  // namespace sluice
