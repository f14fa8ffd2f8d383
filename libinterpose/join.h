// SPDX-License-Identifier: Apache-2.0
// How a process and its threads come to counters of their own: the process claims a slot, each
// thread a shard, both at its first call. A child of fork joins anew.
// What stays true: a thread without a place counts in a common shard, and what a dead process left
// behind is taken again.
#pragma once

#include "abi/segment.h"
#include "state.h"

namespace sluice {

/// A child of a raw clone() may run with thread memory of its maker's own, zeros say: nothing of
/// ours is there, and no address in it means anything, errno's included. libc's memory begins with
/// a pointer that is never null, and that is there twice on x86-64.
inline bool has_foreign_memory() {
#if defined(__x86_64__)
  std::uintptr_t first, again;
  __asm__ volatile("movq %%fs:0, %0" : "=r"(first));
  __asm__ volatile("movq %%fs:16, %0" : "=r"(again));
  return first == 0 || first != again;
#else
  return *static_cast<std::uintptr_t volatile*>(__builtin_thread_pointer()) == 0;
#endif
}

/// The inode of its pid namespace; 0: /proc does not say.
std::uint64_t own_pid_space();
/// Gives this process a slot, unless it has one. False: another thread is just doing so.
bool join_process(abi::segment& s);
/// Makes the calling thread ready to count: after its first call, after fork. False: pass through.
bool join_thread();
/// A thread of this process has another name. It looks at it before its next call that asks for it.
inline void thread_was_named() { stage.threads_named.fetch_add(1, std::memory_order_relaxed); }
/// What stands in `shard_owner` for the calling thread; its process has a slot.
inline std::uint64_t shard_mark() {
  return std::uint64_t{stage.fork_page->slot.load()} << 32 | self.tid;
}
/// Nobody owns a shard with this in `shard_owner`, or its thread has ended, alone or with its
/// process. False where that cannot be told.
bool is_free_or_left(abi::segment& s, std::uint64_t owner);
/// Which rules let the calling thread through: its name or its user has changed.
void refresh_caller_rules();
inline void refresh_callers() {
  if (self.caller_serial != stage.threads_named.load(std::memory_order_relaxed)) [[unlikely]]
    refresh_caller_rules();
}
/// Gives the slot and the shards back, at exit.
void leave_process();

}  // namespace sluice
