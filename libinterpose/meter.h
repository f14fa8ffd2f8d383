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
  std::uint64_t bytes;   // asked for, until the gates: then what byte channels were booked for
  std::uint64_t rules;   // rules met
  bool planned = false;  // passed by the plan of the stage: `rules` was not asked for
};

/// The part of entering that few calls take: no lease at hand, waiting. `rules` is what is left to
/// pass.
[[gnu::noinline]] bool enter_gates(visit& v, std::uint64_t rules, int fd, bool may_sleep,
                                   bool counted);
/// Settles the bytes a call booked with what it moved: the rest comes back, or is paid now.
[[gnu::noinline]] void settle(visit const& v, std::uint64_t moved);

/// Rules a call meets, in the order of their bits.
inline std::uint64_t rules_met(core::op what, unsigned entry) {
  unsigned const target = (entry & entry_kind_mask) - entry_first_target;
  std::uint64_t mask = stage.mine->rules.rules_for[static_cast<unsigned>(what)][target];
  if (stage.has_path_globs) [[unlikely]]
    mask &= stage.plain_rules |
            stage.mine->path_class[entry >> entry_path_shift].load(std::memory_order_relaxed);
  return mask & self.caller_rules;
}

/// core::spend(), by what the subtraction says of its result.
inline bool spend_own(core::lease& l, std::uint64_t cost) {
#if defined(__x86_64__)
  bool lacks;
  __asm__("subq %2, %0" : "+m"(l.tokens), "=@ccl"(lacks) : "er"(cost) : "cc");
  if (!lacks) [[likely]]
    return true;
  core::add_own(l.tokens, cost);
  return false;
#else
  return core::spend(l, cost);
#endif
}

/// The thread holds tokens for this gate: nothing shared is written.
inline bool take_from_lease(abi::channel_counters& c, std::atomic<std::uint32_t> const& curve,
                            bool is_bytes, std::uint64_t units) {
  if (c.lease.gen != curve.load(std::memory_order_relaxed) || !spend_own(c.lease, units))
      [[unlikely]]
    return false;
  add_own(c.calls, 1);
  if (is_bytes) add_own(c.amount, units);
  return true;
}

inline bool take_from_lease(abi::shard& own, gate_plan gate, bool is_bytes, std::uint64_t units) {
  auto* const counters = reinterpret_cast<char*>(&own) + gate.shard_line * line_bytes;
  auto* const curve = reinterpret_cast<char const*>(stage.bucket) + gate.bucket_line * line_bytes;
  return take_from_lease(*reinterpret_cast<abi::channel_counters*>(counters),
                         *reinterpret_cast<std::atomic<std::uint32_t> const*>(curve), is_bytes,
                         units);
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
/// The same by looking at the rules, whatever the thread has: the plan did not say enough, or the
/// first `passed` gates are passed and the next has to be asked for tokens.
[[gnu::noinline]] bool enter_by_rules(visit& v, unsigned entry, int fd, bool may_sleep);
[[gnu::noinline]] bool enter_rest(visit& v, unsigned passed, int fd, bool may_sleep);

/// The second leg of a call that the first has counted.
bool enter_second(visit& v, unsigned entry, int fd);

/// The entry of a place, when the thread is_settled() and no closer look is needed; else
/// entry_unknown.
[[gnu::always_inline]] inline unsigned entry_at_once(place where) {
  if (!is_settled()) [[unlikely]]
    return entry_unknown;
  if (where.kind == place_kind::path)
    return stage.has_path_globs ? entry_unknown : recall(*self.memo, where.fd, where.path);
  if ((where.kind != place_kind::fd && where.kind != place_kind::fd_now) || !in_table(where.fd))
    return entry_unknown;
  unsigned const entry = stage.mine->fd[where.fd].load(std::memory_order_relaxed);
  return is_known(entry) ? entry : entry_unknown;
}

constexpr bool moves_bytes(core::op what) {
  return core::op_table[static_cast<unsigned>(what)].has_bytes;
}

inline op_plan const& plan_of(core::op what, unsigned entry) {
  return stage.plan[entry % plan_rows][static_cast<unsigned>(what)];
}

/// Known, and nobody's business: asked before a visit is prepared, so that the real call is the
/// last thing done.
inline bool is_nobodys(core::op what, unsigned entry) {
  return entry != entry_unknown && plan_of(what, entry).what == planned::not_ours;
}

/// What most calls do, for a thread that is_settled(): the plan says which gates, the thread holds
/// tokens for them. What the visit holds already is said again, because of a record whose address
/// was given away the compiler knows nothing.
template <call id, core::op what>
[[gnu::always_inline]] inline bool enter_planned(visit& v, std::uint64_t bytes, unsigned entry,
                                                 int fd, bool may_sleep) {
  op_plan const& plan = plan_of(what, entry);
  abi::shard& own = *self.counters;
  v.entry = static_cast<std::uint16_t>(entry);
  v.planned = true;
  if (plan.what == planned::gate) [[likely]] {
    constexpr bool moves = moves_bytes(what);
    bool const one = moves && plan.first_bytes;
    if (!take_from_lease(own, plan.first, one, one ? bytes : core::op_units)) [[unlikely]]
      return enter_rest(v, 0, fd, may_sleep);
    if (plan.second.shard_line != 0) [[unlikely]] {
      bool const two = moves && plan.second_bytes;
      if (!take_from_lease(own, plan.second, two, two ? bytes : core::op_units)) [[unlikely]]
        return enter_rest(v, 1, fd, may_sleep);
    }
  } else if (plan.what != planned::count) {
    return plan.what == planned::rules && enter_by_rules(v, entry, fd, may_sleep);
  }
  add_own(own.call[static_cast<unsigned>(id)].calls, 1);
  return true;
}

/// The long ways: a thread's first call, a place that has to be looked at more closely.
[[gnu::noinline]] bool enter_slowly(visit& v, place where);

/// `entry` is what entry_at_once() said of the place.
template <call id, core::op what>
[[gnu::always_inline]] inline bool enter_place(visit& v, std::uint64_t bytes, place where,
                                               unsigned entry) {
  if (entry == entry_unknown) [[unlikely]]
    return enter_slowly(v, where);
  bool const is_fd = where.kind == place_kind::fd || where.kind == place_kind::fd_now;
  return enter_planned<id, what>(v, bytes, entry, is_fd ? where.fd : -1,
                                 where.kind != place_kind::fd_now);
}

/// For what is not called often.
inline bool enter_place(visit& v, place const& where) { return enter_slowly(v, where); }

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

/// The same of an op that moves no bytes.
inline void leave(visit const& v, bool failed) {
  if (failed) [[unlikely]]
    count_outcome(v, true, 0);
}

/// A new fd belongs where its name was looked up, until its first use shows where it really is.
/// What is to be remembered of it is made ready before the real call: after it all is cold.
struct newborn {
  std::atomic<fd_entry>* table;  // null: not to be touched
  unsigned room;                 // of the table
  fd_entry entry;
  explicit newborn(visit const& v)
      : table(self.is_vfork_child || stage.mine == nullptr ? nullptr : stage.mine->fd),
        room(table == nullptr ? 0 : fd_table_size),
        entry((v.entry & entry_kind_mask) >= entry_first_target
                  ? static_cast<fd_entry>(v.entry | entry_unverified)
                  : fd_entry{entry_unknown}) {}
  void is(int fd) const {
    if (static_cast<unsigned>(fd) < room) [[likely]]
      table[fd].store(entry, std::memory_order_relaxed);
  }
};
inline void opened(int fd, visit const& v) { newborn(v).is(fd); }

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
