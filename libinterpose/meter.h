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
[[gnu::noinline]] bool enter_gates(visit& v, std::uint64_t rules, int fd, bool may_sleep);
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

/// The thread holds tokens for this rule: nothing shared is written.
inline bool take_from_lease(abi::segment const& s, visit const& v, unsigned rule) {
  unsigned const channel = stage.channel_of_rule[rule];
  std::uint64_t const bit = std::uint64_t{1} << channel;
  bool const is_bytes = (stage.byte_channels & bit) != 0;
  std::uint64_t const units = is_bytes ? v.bytes : core::op_units;
  core::lease& lease = self.counters->channel[channel].lease;
  if ((stage.counting_channels & bit) != 0 ||
      lease.gen != s.bucket[channel].gen.load(std::memory_order_relaxed) ||
      !core::spend(lease, units))
    return false;
  add(self.counters->channel[channel].calls, 1);
  if (is_bytes) add(self.counters->channel[channel].amount, units);
  return true;
}

/// False: not ours, pass through. errno is untouched. The entry is already found.
inline bool enter_entry(visit& v, unsigned entry, int fd, bool may_sleep) {
  abi::segment const* const s = stage.active.load(std::memory_order_relaxed);
  unsigned const target = (entry & entry_kind_mask) - entry_first_target;
  if (s == nullptr || target >= core::max_targets) return false;
  v.entry = static_cast<std::uint16_t>(entry);
  if (target == 0 && !stage.counts_elsewhere) return false;
  v.rules = rules_met(v.what, entry);
  if (v.rules == 0) return true;
  std::uint64_t left = v.rules;
  if (v.delay != when::never && self.owned)
    while (take_from_lease(*s, v, static_cast<unsigned>(__builtin_ctzll(left))))
      if ((left &= left - 1) == 0) return true;
  return enter_gates(v, left, fd, may_sleep);
}

inline bool enter_place(visit& v, place const& where) {
  if (!joined() && !join_thread()) [[unlikely]]
    return false;
  bool const by_fd = where.kind == place_kind::fd || where.kind == place_kind::fd_now;
  unsigned const entry = by_fd ? entry_of_fd(where.fd) : resolve(where);
  return enter_entry(v, entry, by_fd ? where.fd : -1, where.kind != place_kind::fd_now);
}

/// Counts one call that moved `moved` bytes (data ops only).
inline void leave(visit const& v, bool failed, std::uint64_t moved) {
  if (self.counters == nullptr) [[unlikely]]
    return;
  abi::call_counters& c = self.counters->call[static_cast<unsigned>(v.id)];
  add(c.calls, 1);
  if (failed) add(c.errors, 1);
  if (moved != 0) add(c.bytes, moved);
  if (v.bytes != moved && v.rules != 0) [[unlikely]]
    settle(v, moved);
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
