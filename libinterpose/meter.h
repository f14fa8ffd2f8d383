// SPDX-License-Identifier: Apache-2.0
// One call, from the wrapper to its counters: begin() finds the place, books and waits; end()
// counts the result and settles bytes. What has no plan goes the slow way, enter_place() to
// leave(). The real call stands between the two, and nothing is held meanwhile.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <type_traits>

#include "calls.h"
#include "place.h"
#include "state.h"
#include "visit.h"

namespace sluice {

/// Settles the bytes a call booked with what it moved: the rest comes back, or is paid now.
[[gnu::noinline]] void settle(visit& v, std::uint64_t moved);

/// Class 0 is of files whose names nobody looked at: all rules.
inline std::uint64_t rules_of_path_class(unsigned path_class) {
  if (path_class == 0) return ~std::uint64_t{0};
  return stage.mine->path_class[path_class].load(std::memory_order_relaxed);
}

/// Rules a call meets, in the order of their bits.
inline std::uint64_t rules_met(core::op what, unsigned entry) {
  unsigned const target = (entry & entry_kind_mask) - entry_first_target;
  std::uint64_t mask = stage.mine->rules.rules_for[static_cast<unsigned>(what)][target];
  if (stage.has_path_globs) [[unlikely]]
    mask &= stage.plain_rules | rules_of_path_class(entry >> entry_path_shift);
  return mask & self.caller_rules;
}

/// No call moves more (MAX_RW_COUNT of the kernel), whatever it asks for.
inline constexpr std::uint64_t most_moved = 0x7fff'f000;

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
inline bool take_from_lease(abi::channel_counters& c, gate_plan gate, std::uint64_t units) {
  auto* const curve = reinterpret_cast<char const*>(stage.bucket) + gate.curve;
  auto const number = reinterpret_cast<std::atomic<std::uint32_t> const*>(curve);
  return c.lease.gen == number->load(std::memory_order_relaxed) && spend_own(c.lease, units);
}

inline abi::channel_counters& counters_of(abi::shard& own, gate_plan gate) {
  return *reinterpret_cast<abi::channel_counters*>(reinterpret_cast<char*>(&own) + gate.counters);
}

inline void count_passed(abi::channel_counters& c, bool is_bytes, std::uint64_t units) {
  add_own(c.calls, 1);
  if (is_bytes) add_own(c.amount, units);
}

/// A call that went through its gates at once. Others are counted in enter_gates() (meter.cc).
inline void count_made(abi::shard& own, call id) {
  --self.untimed_left;
  add_own(own.call[static_cast<unsigned>(id)].calls, 1);
}

/// An fd that no rule can mean: a pipe, a socket, a file elsewhere. Asked before anything is
/// prepared; a process that has not joined goes the long way once.
inline bool is_elsewhere(place const& where) {
  if (where.kind != place_kind::fd && where.kind != place_kind::fd_now) return false;
  if (!in_table(where.fd)) return false;
  unsigned const entry = stage.mine->entry_of(where.fd).load(std::memory_order_relaxed) &
                         (entry_kind_mask | entry_unverified);
  return entry != entry_unknown && entry < stage.first_counted &&
         stage.fork_page->generation.load(std::memory_order_relaxed) != 0;
}

/// The entry of an fd when the thread is_settled() and no closer look is needed; else
/// entry_unknown.
inline unsigned entry_at_once(int fd) {
  if (!is_settled() || !in_table(fd)) [[unlikely]]
    return entry_unknown;
  unsigned const entry = stage.mine->entry_of(fd).load(std::memory_order_relaxed);
  return is_known(entry) ? entry : entry_unknown;
}

/// How a call begins. For most that is all: the real call is the next thing done, and no record of
/// them is needed but this word. `entry` may be unknown when it is unclear. What is `priced` has
/// still to pay_priced().
enum class begun : std::uint32_t {
  unclear = 0,
  priced = 1u << 16,
  not_ours = 2u << 16,
  passed = 3u << 16
};
struct beginning {
  std::uint32_t word = 0;
  beginning() = default;
  beginning(unsigned entry, begun how) : word(entry | static_cast<std::uint32_t>(how)) {}
  unsigned entry() const { return word & 0xffff; }
  bool is(begun how) const { return word >> 16 == static_cast<std::uint32_t>(how) >> 16; }
  /// The real call may be made.
  bool is_over() const { return word >= static_cast<std::uint32_t>(begun::not_ours); }
};

/// Of a plan that has other gates than those of operations and bytes.
constexpr begun begun_by(planned what) {
  if (what == planned::not_ours) return begun::not_ours;
  return what == planned::priced ? begun::priced : begun::unclear;
}

/// What begin_planned() leaves where a gate counts VOPs: passed, or unclear and nothing taken.
[[gnu::noinline]] beginning pay_priced_read(call id, unsigned entry, std::uint64_t bytes,
                                            bool aligned);
[[gnu::noinline]] beginning pay_priced_write(call id, unsigned entry, std::uint64_t bytes,
                                             bool aligned);
[[gnu::noinline]] beginning pay_priced_op(call id, unsigned entry, core::op what);

template <core::op what>
[[gnu::always_inline]] inline beginning pay_priced(call id, unsigned entry, place const& where,
                                                   std::uint64_t bytes) {
  if constexpr (!moves_bytes(what)) return pay_priced_op(id, entry, what);
  bool const aligned = core::is_aligned(where.low, bytes);
  if constexpr (what == core::op::read) return pay_priced_read(id, entry, bytes, aligned);
  return pay_priced_write(id, entry, bytes, aligned);
}

/// What most calls do, for a thread that is_settled(): the plan says which gates, the thread holds
/// tokens for them. Unless it holds them for all of the gates nothing is taken and nothing counted.
template <bool moves>
[[gnu::always_inline]] inline begun begin_planned(call id, core::op what, unsigned entry,
                                                  std::uint64_t bytes) {
  op_plan const* at = &stage.mine->plan[entry % plan_rows][static_cast<unsigned>(what)];
  __asm__("" : "+r"(at));  // else its parts are computed one by one, a tenth of the way to libc
  op_plan const& row = *at;
  abi::shard& own = *self.counters;
  if (self.untimed_left <= 0 || (moves && bytes > most_moved)) [[unlikely]]
    return row.what == planned::not_ours ? begun::not_ours : begun::unclear;
  if (row.what == planned::gate) [[likely]] {
    bool const one = moves && row.first_bytes;
    abi::channel_counters& first = counters_of(own, row.first);
    std::uint64_t const cost = one ? bytes : core::op_units;
    if (!take_from_lease(first, row.first, cost)) [[unlikely]]
      return begun::unclear;
    if (row.second.counters != 0) [[unlikely]] {
      bool const two = moves && row.second_bytes;
      abi::channel_counters& second = counters_of(own, row.second);
      if (!take_from_lease(second, row.second, two ? bytes : core::op_units)) [[unlikely]] {
        core::add_own(first.lease.tokens, cost);
        return begun::unclear;
      }
      count_passed(second, two, bytes);
    }
    count_passed(first, one, bytes);
  } else if (!moves && row.what == planned::fixed) {
    abi::channel_counters& priced = counters_of(own, row.first);
    if (!take_from_lease(priced, row.first, row.units)) [[unlikely]]
      return begun::unclear;
    count_passed(priced, true, row.units);
  } else if (row.what != planned::count) {
    return begun_by(row.what);
  }
  count_made(own, id);
  return begun::passed;
}

template <bool moves>
[[gnu::always_inline]] inline beginning begin_known(call id, core::op what, unsigned entry,
                                                    std::uint64_t bytes) {
  if (entry == entry_unknown) [[unlikely]]
    return {};
  return {entry, begin_planned<moves>(id, what, entry, bytes)};
}

/// The same with the place still to be found, for ops that move no bytes. One piece of code for all
/// calls: what is hottest is small.
[[gnu::hot]] beginning begin_on_path(call id, core::op what, int dir, char const* path);
[[gnu::hot]] beginning begin_on_fd(call id, core::op what, int fd);

template <call id, core::op what>
[[gnu::always_inline]] inline beginning begin(place where, std::uint64_t bytes) {
  constexpr bool moves = moves_bytes(what);
  if constexpr (what == core::op::fsync) return {};  // each is timed
  bool const is_fd = where.kind == place_kind::fd || where.kind == place_kind::fd_now;
  if (where.kind == place_kind::path && !moves)
    return begin_on_path(id, what, where.fd, where.path);
  if (is_fd && !moves) return begin_on_fd(id, what, where.fd);
  unsigned const entry = is_fd ? entry_at_once(where.fd) : entry_unknown;
  return begin_known<moves>(id, what, entry, bytes);
}

/// `what`: open, or op_create where it may make the file.
[[gnu::always_inline]] inline beginning begin_open(call id, core::op what, place const& where) {
  if (where.kind == place_kind::path) return begin_on_path(id, what, where.fd, where.path);
  return begin_on_fd(id, what, where.fd);
}

/// The long way: the place or the rules have to be looked at, tokens asked for, waited for. False:
/// not ours, pass through. errno is untouched.
[[gnu::cold]] bool enter_place(visit& v, place where, unsigned entry = entry_unknown);
bool enter_entry(visit& v, unsigned entry, int fd, bool may_sleep);
/// The second leg of a call that the first has counted.
bool enter_second(visit& v, unsigned entry, int fd);

/// What it moved, at its path and its role.
void note_moved(visit const& v, std::uint64_t moved);

/// Counts what came of it. That it was made is counted when it passes. `moved`: bytes, of data ops
/// only.
void leave(visit& v, bool failed, std::uint64_t moved);

/// Whether an open with these flags may make a file.
constexpr bool creates(int flags) {
  constexpr int nameless = O_TMPFILE & ~O_DIRECTORY;
  return (flags & (O_CREAT | nameless)) != 0;
}

/// A new fd belongs where its name was looked up, until its first use shows where it really is.
inline unsigned entry_of_newborn(unsigned entry) {
  return (entry & entry_kind_mask) >= entry_first_target ? entry | entry_unverified : entry_unknown;
}
void opened(int fd, visit const& v);

/// Charges the closing of `fd` and forgets it. True: leave() is owed.
bool enter_close(visit& v, int fd);

/// Charges a finished call that was not delayed and lets its caller wait for the debt: stdio.
/// `began_ns`: when it began, if it may be timed.
void settle_after(call id, core::op what, int fd, std::uint64_t bytes, bool failed,
                  std::int64_t began_ns = visit::untimed);

/// Pays for one asynchronous read or write where the program asks for it. The I/O itself is done by
/// the kernel or by a thread inside libc.
void charge_request(call id, bool reads, int fd, std::int64_t at, std::uint64_t size);

/// Charges bytes that we have the kernel read ahead on an fd, and counts no call for it. False:
/// there are no tokens now, and nothing was booked. The part that a large request pays after it
/// becomes a debt.
bool pay_ahead(int fd, std::uint64_t bytes);
/// What devices did for this thread so far. False: it is not known.
bool ask_device_work(core::device_work& work);

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

/// What is paid late may wait, unless the caller asked not to sleep. It is no cancellation point.
inline when delay_after(place where) {
  return where.kind == place_kind::fd_now ? when::never : when::before;
}

/// Of fcntl(2): commands that copy a descriptor, and those that lock a file.
constexpr bool copies_fd(int command) { return command == F_DUPFD || command == F_DUPFD_CLOEXEC; }
constexpr bool locks_file(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
         command == F_OFD_SETLKW;
}

/// The end of a call that passed at once. Counts what came of it, when that is not just what was
/// asked for.
[[gnu::cold]] void count_error(call id);
[[gnu::cold]] void count_short(call id, core::op what, when delay, unsigned entry,
                               std::uint64_t asked, bool failed, std::uint64_t moved);

template <core::op what, class Result>
[[gnu::always_inline]] inline void end(call id, place where, beginning b, std::uint64_t asked,
                                       Result r) {
  if constexpr (moves_bytes(what)) {
    auto const moved = static_cast<std::uint64_t>(r);
    if (moved != asked || r < 0) [[unlikely]]
      count_short(id, what, delay_after(where), b.entry(), asked, r < 0, r < 0 ? 0 : moved);
    else if (moved != 0)
      add_own(self.counters->call[static_cast<unsigned>(id)].bytes, moved);
  } else if (is_failure(r)) [[unlikely]] {
    count_error(id);
  }
}

/// What the device did for this thread so far, and then for the call, where a channel of it counts
/// that; else nothing is asked. To be called next to the real call: what else the thread does is
/// not the call's.
void look_at_device(visit& v);
void note_device_work(visit& v);

/// A call that did not begin at once, with what it does. Out of the way of those that do.
template <class Real>
[[gnu::noinline, gnu::cold]] auto call_slowly(visit v, place where, unsigned entry,
                                              Real const& real_call) {
  using result = decltype(real_call());
  if (stage.has_measured && moves_bytes(v.what)) v.manner |= visit::measured;
  if (!enter_place(v, where, entry)) return real_call();
  if (v.refused) {
    errno = EAGAIN;
    return (result)(-1L);
  }
  bool const is_measured = (v.manner & visit::measured) != 0;
  if (is_measured) look_at_device(v);
  auto const r = real_call();
  if (is_measured) note_device_work(v);
  leave(v, is_failure(r), moved_bytes(v.what, r));
  return static_cast<result>(r);
}

template <class Real>
[[gnu::noinline, gnu::cold]] auto open_slowly(visit v, place where, beginning b,
                                              Real const& real_call) {
  bool const ours = enter_place(v, where, b.entry());
  auto const r = real_call();
  opened(static_cast<int>(r), v);
  if (ours) leave(v, r < 0, 0);
  return r;
}

}  // namespace sluice
