// SPDX-License-Identifier: Apache-2.0
// One call, from the wrapper to its counters: enter() finds the place, books and waits; leave()
// counts what happened and settles bytes. Between the two stands the real call, and nothing is
// held.
#pragma once

#include <cerrno>
#include <type_traits>

#include "calls.h"
#include "place.h"
#include "state.h"

namespace sluice {

enum class when : std::uint8_t {
  before,   // wait, then call
  cancels,  // the same, and a wait is a cancellation point
  never,    // charge, do not delay: close, and what is settled late
};

/// One leg of a call in flight. Plain data: it may be abandoned at any moment.
struct visit {
  call id;
  core::op what;
  when delay;
  bool refused;  // RWF_NOWAIT and no tokens: the caller gets EAGAIN, nothing was booked
  std::uint16_t entry;
  std::uint64_t bytes;  // asked for, until the gates: then what byte channels were booked for
  std::uint64_t rules;  // rules met
};

/// The part of entering that few calls take: no lease at hand, waiting. `rules` is what is left to
/// pass.
[[gnu::noinline]] bool enter_gates(visit& v, std::uint64_t rules, int fd, bool may_sleep,
                                   bool counted);
/// Settles the bytes a call booked with what it moved: the rest comes back, or is paid now.
[[gnu::noinline]] void settle(visit const& v, std::uint64_t moved);

inline std::uint64_t rules_met(core::op what, unsigned entry) {
  unsigned const target = (entry & entry_kind_mask) - entry_first_target;
  std::uint64_t mask = stage.mine->rules.rules_for[static_cast<unsigned>(what)][target];
  if (stage.has_path_globs) [[unlikely]]
    mask &= stage.plain_rules |
            stage.mine->path_class[entry >> entry_path_shift].load(std::memory_order_relaxed);
  return mask & self.caller_rules;
}

/// The thread holds tokens for this gate: nothing shared is written.
inline bool take_from_lease(abi::segment const& s, abi::shard& own, visit const& v, unsigned gate) {
  unsigned const channel = gate & gate_channel;
  abi::channel_counters& c = own.channel[channel];
  bool const is_bytes = (gate & gate_bytes) != 0;
  std::uint64_t const units = is_bytes ? v.bytes : core::op_units;
  if ((gate & gate_counts) != 0 ||
      c.lease.gen != s.bucket[channel].gen.load(std::memory_order_relaxed) ||
      !core::spend(c.lease, units))
    return false;
  add_own(c.calls, 1);
  if (is_bytes) add_own(c.amount, units);
  return true;
}

/// An fd that no rule can mean: a pipe, a socket, a file elsewhere. Asked before anything is
/// prepared; a process that has not joined goes the long way once.
inline bool is_elsewhere(place const& where) {
  if (where.kind != place_kind::fd && where.kind != place_kind::fd_now) return false;
  if (!in_table(where.fd)) return false;
  unsigned const entry = stage.mine->fd[where.fd].load(std::memory_order_relaxed) &
                         (entry_kind_mask | entry_unverified);
  return entry != entry_unknown && entry < stage.first_counted &&
         stage.fork_page->load(std::memory_order_relaxed) != 0;
}

/// False: not ours, pass through. errno is untouched. The entry is already found.
[[gnu::hot]] bool enter_entry(visit& v, unsigned entry, int fd, bool may_sleep);

/// The second leg of a call that the first has counted.
bool enter_second(visit& v, unsigned entry, int fd);

template <bool counted = true>
[[gnu::always_inline]] inline bool enter_found(visit& v, unsigned entry, int fd, bool may_sleep) {
  abi::segment const* const s = stage.active.load(std::memory_order_relaxed);
  unsigned const target = (entry & entry_kind_mask) - entry_first_target;
  if (s == nullptr || target >= core::max_targets) return false;
  v.entry = static_cast<std::uint16_t>(entry);
  if (target == 0 && !stage.counts_elsewhere) return false;
  v.rules = rules_met(v.what, entry);
  std::uint64_t left = v.rules;
  if (self.owned) [[likely]] {
    while (left != 0 &&
           take_from_lease(*s, *self.counters, v, stage.gate_of_rule[__builtin_ctzll(left)]))
      left &= left - 1;
    if (left == 0) [[likely]] {
      if (counted) add_own(self.counters->call[static_cast<unsigned>(v.id)].calls, 1);
      return true;
    }
  }
  return enter_gates(v, left, fd, may_sleep, counted);
}

/// The same where the place has to be found first: three functions, because the kind of place is
/// known where they are called.
[[gnu::hot]] bool enter_fd(visit& v, int fd, bool may_sleep);
[[gnu::hot]] bool enter_path(visit& v, int dir, char const* path);
bool enter_other_place(visit& v, place const& where);

inline bool enter_place(visit& v, place const& where) {
  switch (where.kind) {
    case place_kind::fd:
    case place_kind::fd_now:
      return enter_fd(v, where.fd, where.kind == place_kind::fd);
    case place_kind::path:
      return enter_path(v, where.fd, where.path);
    default:
      return enter_other_place(v, where);
  }
}

/// Counts what came of a call when that is not just the bytes it asked for: an error, a short one.
/// That it was made is counted when it passes.
[[gnu::noinline]] void count_outcome(visit const& v, bool failed, std::uint64_t moved);

/// `moved`: bytes, of data ops only.
inline void leave(visit const& v, bool failed, std::uint64_t moved) {
  if (failed || moved != v.bytes || !self.owned) [[unlikely]]
    count_outcome(v, failed, moved);
  else if (moved != 0)
    add_own(self.counters->call[static_cast<unsigned>(v.id)].bytes, moved);
}

/// A new fd belongs where its name was looked up, until its first use shows where it really is.
inline void opened(int fd, visit const& v) {
  if (fd < 0 || sluice_vfork_child || stage.mine == nullptr) return;
  bool const known = (v.entry & entry_kind_mask) >= entry_first_target;
  set_fd(fd, known ? v.entry | entry_unverified : entry_unknown);
}

/// Charges the closing of `fd` and forgets it. True: leave() is owed.
bool enter_close(visit& v, int fd);

/// Charges a finished call that was not delayed and lets its caller wait for the debt: stdio.
void settle_after(call id, core::op what, int fd, std::uint64_t bytes, bool failed);

/// Pays for one asynchronous read or write where the program asks for it. The I/O itself is done by
/// the kernel or by a thread inside libc.
void charge_request(call id, bool reads, int fd, std::int64_t at, std::uint64_t size);

/// Counts and charges `n` ops on an fd or place; may wait. For what hides many calls in one.
void charge(call id, core::op what, place const& where, std::uint64_t n);

template <class Result>
bool is_failure(Result r) {
  if constexpr (std::is_pointer_v<Result>)
    return r == nullptr || r == reinterpret_cast<Result>(-1);
  else
    return r == static_cast<Result>(-1);
}

template <class Result>
std::uint64_t moved_bytes(core::op what, Result r) {
  if constexpr (std::is_integral_v<Result>) {
    bool const data = what == core::op::read || what == core::op::write;
    if (data && !is_failure(r)) return static_cast<std::uint64_t>(r);
  }
  return 0;
}

}  // namespace sluice
