// SPDX-License-Identifier: Apache-2.0
// See meter.h. The order of a call: join (first call of a thread, after fork), resolve the place,
// pick the rules, pass their buckets one after the other, narrowest first, so that who waits for
// `open` holds nothing of `metadata`. A bucket is waited for with a raw futex call: no new
// cancellation point, no errno, no EINTR.
#include "meter.h"

#include <linux/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "clock.h"
#include "core/would_wait.h"
#include "gone.h"
#include "join.h"
#include "loaded.h"
#include "paths.h"
#include "plan.h"
#include "roles.h"
#include "sys.h"
#include "times.h"
#include "waiters.h"

namespace sluice {

namespace {

constexpr unsigned max_rounds = 1u << 20;  // against a scribbled bucket: then pass

struct passage {
  abi::segment& s;
  visit& v;
  int fd;  // to check before sleeping, or -1
  bool may_sleep;
  std::uint64_t waited_ns;
  bool is_open = false;  // the last gate asked nothing: its lease is over
};

constexpr std::uint64_t device_block = 512;  // of a rusage

std::int64_t timer_slack_ns() {
  if (!self.slack_known) {
    long const slack = sys::call(SYS_prctl, PR_GET_TIMERSLACK);
    self.slack_ns = sys::failed(slack) ? 0 : slack;
    self.slack_known = true;
  }
  return self.slack_ns;
}

using waiters::give_back;

// The fd may have become another file behind our back (a raw close, a vfork child): look before
// sleeping.
bool still_ours(passage const& p) {
  if (p.fd < 0) return true;
  unsigned const now = verify_fd(p.fd, p.v.entry >> entry_path_shift, p.v.entry | entry_unverified);
  if ((now & entry_kind_mask) == (p.v.entry & entry_kind_mask)) return true;
  pass_through(abi::passthrough::not_ours);
  return false;
}

// A wait that seemed to be over was given back, and goes on: it is booked anew. True: paid at once.
bool book_again(core::bucket& b, core::ticket& t, std::uint32_t& settled) {
  settled = waiters::settled_so_far();
  return core::book(b, t.cost, t);
}

// Sleeps until the ticket is due. False: the call is not to be delayed after all; the ticket was
// given back. Not inline: where its frame lies tells whether a wait before was left.
[[gnu::noinline]] bool wait_for_ticket(passage& p, unsigned channel, core::ticket& t) {
  core::bucket& b = p.s.bucket[channel];
  std::int64_t const since_ns = now_ns();
  auto const frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  bool slept = false, looks_soon = false;
  std::uint32_t settled = waiters::settled_so_far();
  for (unsigned round = 0; round < max_rounds; ++round) {
    std::int64_t const at_ns = round == 0 ? since_ns : now_ns();
    if (!still_a_segment(p.s)) return false;
    if (slept && waiters::was_settled(settled, t) && book_again(b, t, settled)) break;
    core::decision const d = core::decide(b, t, at_ns, timer_slack_ns());
    bool const is_apart_in_time = abi::is_of_another_clock(p.s.head.created_ns, at_ns);
    p.is_open = is_apart_in_time || d.what == core::decision::pass_open;
    if (p.is_open)
      pass_through(is_apart_in_time ? abi::passthrough::other_clock : abi::passthrough::lease_over);
    if (slept && d.what == core::decision::pass) waiters::hide();
    if (slept && waiters::was_settled(settled, t) && !p.is_open) continue;  // until it was hidden
    if (d.what == core::decision::pass || p.is_open) break;
    if (d.what == core::decision::again) continue;
    if (!p.may_sleep || (!slept && !still_ours(p))) {
      give_back(b, t.cost);
      return false;
    }
    if (!slept && waiters::settle_own(p.s, frame, at_ns)) continue;
    gone_look const gone = look_for_the_gone(p.s, channel, t, at_ns);
    looks_soon = looks_soon || gone.keeps;
    if (gone.gave_back) continue;
    slept = true;
    waiters::show({p.v, channel, since_ns, frame}, t);  // anew: a handler may have waited meanwhile
    std::int64_t const look_ns = at_ns + core::looks_apart_ns;
    bool const wakes_to_look = looks_soon && look_ns < d.deadline_ns;
    sys::futex_wait(&core::futex_word(b), d.seq, wakes_to_look ? look_ns : d.deadline_ns, d.mask);
    looks_soon = false;
    bool const may_end = p.v.delay == when::cancels;
    bool const is_detached = stage.active.load(std::memory_order_relaxed) == nullptr;
    if (may_end) waiters::show_leaving();
    if (may_end) loaded::end_if_cancelled();
    if (is_detached) {
      waiters::hide();
      return false;
    }
  }
  if (slept) {
    p.waited_ns += static_cast<std::uint64_t>(now_ns() - since_ns);
    waiters::hide();
  }
  return true;
}

bool take(passage& p, unsigned channel, std::uint64_t units) {
  core::bucket& b = p.s.bucket[channel];
  if (!p.may_sleep && !core::has_turn(b, now_ns())) return false;
  core::ticket t;
  bool passed;
  if (self.owned) {
    auto const sharers = p.s.head.threads.load(std::memory_order_relaxed);
    passed = core::take_leased(b, self.counters->channel[channel].lease, units, sharers, t);
  } else {
    passed = core::book(b, units, t);
  }
  return passed || wait_for_ticket(p, channel, t);
}

// What counts VOPs is cut no smaller than the cheapest request.
std::uint64_t least_piece(unsigned gate) {
  return (gate & gate_vops) != 0 ? core::milli_per_vop : 1;
}

// Large requests are paid in pieces, so that a small one next to them waits for one piece at most.
void take_pieces(passage& p, unsigned gate, std::uint64_t units) {
  unsigned const channel = gate & gate_channel;
  p.is_open = false;
  while (units > 0 && !p.is_open) {
    std::uint64_t const piece = core::next_piece(p.s.bucket[channel], units, least_piece(gate));
    if (!take(p, channel, piece)) return;
    units -= piece;
  }
}

// What each of some rules leads to, narrowest first.
template <class Visit>
void each_gate(std::uint64_t rules, Visit&& visit_gate) {
  for (; rules != 0; rules &= rules - 1) visit_gate(stage.gate_of_rule[__builtin_ctzll(rules)]);
}

/// Whether how much a call moves decides what it pays there.
bool asks_size(visit const& v, unsigned gate) {
  return (gate & gate_bytes) != 0 || ((gate & gate_vops) != 0 && moves_bytes(v.what));
}

/// What a call pays at a gate, as its bucket counts; of an open that it only opens.
[[gnu::always_inline]] inline std::uint64_t units_at(unsigned gate, core::op what,
                                                     std::uint64_t bytes, bool aligned) {
  if ((gate & gate_bytes) != 0) return bytes;
  if ((gate & gate_vops) == 0) return core::op_units;
  return core::cost_milli(core::costs_of(stage.mine->rules, gate & gate_channel), what, bytes,
                          aligned);
}

/// Whether a stage counts how much, not only how often.
constexpr bool has_amount(unsigned gate) { return (gate & (gate_bytes | gate_vops)) != 0; }

/// In thousandths of a VOP, by the table that a plan names.
[[gnu::always_inline]] inline std::uint64_t planned_price(unsigned cost, core::op what,
                                                          std::uint64_t bytes, bool aligned) {
  auto const* const tables = reinterpret_cast<char const*>(stage.mine->rules.cost);
  auto const* const costs =
      reinterpret_cast<core::cost_table const*>(tables + cost - sizeof(core::cost_table));
  return core::cost_milli(*costs, what, bytes, aligned);
}

/// How a priced call was made, in the byte of its entry that no path rules need.
constexpr unsigned with_manner(unsigned entry, bool aligned) {
  return aligned ? entry : entry | unsigned{visit::unaligned} << entry_path_shift;
}
inline std::uint8_t manner_of(unsigned entry) {
  return stage.has_path_globs ? std::uint8_t{0}
                              : static_cast<std::uint8_t>(entry >> entry_path_shift);
}

/// Whether a call pays there, after it, for what the device did.
bool is_measured(visit const& v, unsigned gate) {
  return (v.manner & visit::measured) != 0 && (gate & gate_vops) != 0 &&
         core::costs_of(stage.mine->rules, gate & gate_channel).by_device != 0;
}

/// What a call that moves so much pays at a gate, as its bucket counts.
std::uint64_t units_of(visit const& v, unsigned gate, std::uint64_t bytes) {
  if (is_measured(v, gate)) [[unlikely]]
    return 0;
  bool const creates = (gate & gate_vops) != 0 && (v.manner & visit::creates) != 0;
  if (creates) [[unlikely]]
    return core::costs_of(stage.mine->rules, gate & gate_channel).create_milli;
  return units_at(gate, v.what, bytes, (v.manner & visit::unaligned) == 0);
}

/// The same when the call has been made.
std::uint64_t units_owed(visit const& v, unsigned gate, std::uint64_t moved) {
  if (!is_measured(v, gate)) return units_of(v, gate, moved);
  return core::device_milli(core::costs_of(stage.mine->rules, gate & gate_channel), v.what, v.did,
                            moved, (v.manner & visit::unaligned) == 0);
}

/// The part of `bytes` that fits a piece: of those that cost more, in proportion.
std::uint64_t bytes_of_piece(abi::segment const& s, visit const& v, unsigned gate,
                             std::uint64_t bytes) {
  std::uint64_t const units = units_of(v, gate, bytes);
  if (units == 0) return bytes;
  std::uint64_t const piece =
      core::next_piece(s.bucket[gate & gate_channel], units, least_piece(gate));
  if (piece == units) return bytes;
  auto const part = static_cast<std::uint64_t>(core::u128(bytes) * piece / units);
  return part == 0 ? 1 : part;
}

// How much a call pays before it runs: one quantum. How much it will move nobody knows yet (a
// program may ask for a gigabyte of a small file), so the rest is paid afterwards. A channel of
// bytes or VOPs that was already passed, from a lease, was passed with all.
std::uint64_t bytes_before(abi::segment const& s, visit const& v, std::uint64_t left) {
  bool all_booked = false;
  each_gate(v.rules & ~left, [&](unsigned gate) { all_booked |= asks_size(v, gate); });
  std::uint64_t bytes = v.bytes;
  if (all_booked || bytes == 0) return bytes;
  each_gate(left, [&](unsigned gate) {
    if (asks_size(v, gate)) bytes = bytes_of_piece(s, v, gate, bytes);
  });
  return bytes;
}

// Where the early waits of a gate are kept at which the size decides: its place among such gates of
// the call. `early_gates`: nowhere.
unsigned early_place(visit const& v, unsigned channel) {
  unsigned place = 0, found = visit::early_gates;
  each_gate(v.rules, [&](unsigned gate) {
    if (!asks_size(v, gate)) return;
    if ((gate & gate_channel) == channel && found == visit::early_gates) found = place;
    ++place;
  });
  return found < visit::early_gates ? found : visit::early_gates;
}

// A wait before the call. Where the size decides, the call may wait again after it, and both waits
// are one delay: this one is kept until the other is known.
void count_wait(passage& p, unsigned gate, std::uint64_t waited_ns) {
  unsigned const channel = gate & gate_channel;
  abi::channel_counters& c = self.counters->channel[channel];
  add(c.delayed, 1);
  add(c.waited_ns, waited_ns);
  unsigned const place = asks_size(p.v, gate) ? early_place(p.v, channel) : visit::early_gates;
  if (place < visit::early_gates)
    p.v.early_wait_ns[place] += waited_ns;
  else
    p.s.channel[channel].waits.add(waited_ns);
}

// A wait after the call, or 0. With what it waited there before, it is one.
void count_late_wait(passage& p, unsigned channel, std::uint64_t waited_ns) {
  abi::channel_counters& c = self.counters->channel[channel];
  unsigned const place = early_place(p.v, channel);
  std::uint64_t const early_ns = place < visit::early_gates ? p.v.early_wait_ns[place] : 0;
  if (early_ns == 0 && waited_ns == 0) return;
  if (early_ns == 0) add(c.delayed, 1);
  add(c.waited_ns, waited_ns);
  p.s.channel[channel].waits.add(early_ns + waited_ns);
  if (place < visit::early_gates) p.v.early_wait_ns[place] = 0;
}

void count_call_wait(passage const& p) {
  if (p.waited_ns == 0) return;
  abi::call_counters& c = self.counters->call[static_cast<unsigned>(p.v.id)];
  bool const is_first = !p.v.has_waited;
  if (is_first) add(c.delayed, 1);
  p.v.has_waited = true;
  add(c.waited_ns, p.waited_ns);
  if (!p.v.is_noted) return;
  if (p.v.path_slot != 0) paths::add_wait(p.v, p.waited_ns);
  if (stage.has_roles) roles::count_wait(p.v, p.waited_ns, is_first);
}

// False: nothing was booked.
bool book_gate(passage& p, unsigned gate, std::uint64_t units) {
  unsigned const channel = gate & gate_channel;
  if (p.v.delay == when::never) {
    core::book_debt(p.s.bucket[channel], units);
    return true;
  }
  std::uint64_t const before_ns = p.waited_ns;
  bool const on = take(p, channel, units);
  if (p.waited_ns != before_ns) count_wait(p, gate, p.waited_ns - before_ns);
  return on;
}

// What its limit would have done to a call that is only counted.
void note_spared(passage& p, unsigned channel, std::uint64_t units) {
  abi::channel_state& state = p.s.channel[channel];
  core::curve c;
  if (!core::read_curve(p.s.bucket[channel], c)) return;
  bool const waits = p.v.delay != when::never;
  core::spilled const s = core::spill(state.full_until_ns, c, units, now_ns(), waits);
  if (!s.is_delayed) return;
  state.spared_calls.fetch_add(1, std::memory_order_relaxed);
  state.spared_ns.fetch_add(s.wait_ns, std::memory_order_relaxed);
  if (s.wait_ns != 0) state.spared.add(s.wait_ns);
}

// One bucket of the request, counted when it is passed. False: stop here, the call passes without
// delay.
bool pass_bucket(passage& p, unsigned gate) {
  unsigned const channel = gate & gate_channel;
  std::uint64_t const units = units_of(p.v, gate, p.v.bytes);
  bool const counts = (gate & gate_counts) != 0;
  if (counts && units != 0) note_spared(p, channel, units);
  if (!counts && units != 0 && !book_gate(p, gate, units)) return false;
  abi::channel_counters& c = self.counters->channel[channel];
  add(c.calls, 1);
  if (has_amount(gate)) add(c.amount, units);
  return true;
}

// A call that is not made: what it was booked for, in all channels.
void take_back(abi::segment& s, visit const& v) {
  each_gate(v.rules, [&](unsigned gate) {
    unsigned const channel = gate & gate_channel;
    std::uint64_t const units = units_of(v, gate, v.bytes);
    abi::channel_counters& c = self.counters->channel[channel];
    add(c.calls, ~std::uint64_t{0});
    if (has_amount(gate)) add(c.amount, -units);
    if ((gate & gate_counts) == 0) give_back(s.bucket[channel], units);
  });
}

// What few calls need: no lease at hand, waiting. `rules` is what is left to pass.
[[gnu::noinline]] bool enter_gates(visit& v, std::uint64_t rules, int fd, bool may_sleep,
                                   bool counted) {
  abi::segment* const s = stage.active.load(std::memory_order_relaxed);
  if (s == nullptr) return false;
  v.bytes = bytes_before(*s, v, rules);
  passage p{*s, v, fd, may_sleep, 0};
  for (std::uint64_t left = rules; left != 0; left &= left - 1) {
    if (pass_bucket(p, stage.gate_of_rule[__builtin_ctzll(left)])) continue;
    v.refused = !may_sleep;
    v.rules &= ~left;  // what was not booked is not settled
    break;
  }
  if (v.refused)
    take_back(*s, v);
  else if (counted)
    add(self.counters->call[static_cast<unsigned>(v.id)].calls, 1);
  count_call_wait(p);
  return true;
}

// What a call owes, instead of what it was looked at for.
void settle_spared(passage& p, unsigned channel, std::uint64_t booked, std::uint64_t owed) {
  core::curve c;
  if (owed > booked) return note_spared(p, channel, owed - booked);
  if (core::read_curve(p.s.bucket[channel], c))
    core::pour_back(p.s.channel[channel].full_until_ns, c, booked - owed, now_ns());
}

// The rules ask who calls, or for what.
[[gnu::noinline]] void find_caller(visit& v, bool counted) {
  refresh_callers();
  v.rules = rules_met(v.what, v.entry);
  if (!stage.has_roles) return;
  unsigned const clause = roles::decide(v.what, v.entry);
  v.clause = static_cast<std::uint8_t>(clause + 1);
  v.rules &= roles::rules_of(clause);
  v.is_noted = true;
  if (counted) roles::count_call(v);
}

// The rules say what to do with each call; the plan of the stage is a copy of what they say.
bool enter_found(visit& v, unsigned entry, int fd, bool may_sleep, bool counted) {
  unsigned const target = (entry & entry_kind_mask) - entry_first_target;
  v.entry = static_cast<std::uint16_t>(entry);
  if (v.bytes > most_moved) v.bytes = most_moved;
  if (target >= core::max_targets || (target == 0 && !stage.counts_elsewhere)) return false;
  if (stage.has_callers) [[unlikely]]
    find_caller(v, counted);
  else
    v.rules = rules_met(v.what, entry);
  std::uint64_t left = v.rules;
  for (; left != 0 && self.owned; left &= left - 1) {
    unsigned const gate = stage.gate_of_rule[__builtin_ctzll(left)];
    if ((gate & gate_counts) != 0) break;
    gate_plan const planned = plan_gate(gate);
    abi::channel_counters& c = counters_of(*self.counters, planned);
    std::uint64_t const units = units_of(v, gate, v.bytes);
    if (!take_from_lease(c, planned, units)) break;
    count_passed(c, has_amount(gate), units);
  }
  return enter_gates(v, left, fd, may_sleep, counted);
}

}  // namespace

// A function of its own, to which begin_on_path() can jump with its arguments where they are.
[[gnu::noinline]] static beginning begin_with_clock(call id, core::op what, int dir,
                                                    char const* path) {
  ask_clock(self.memo);
  return begin_on_path(id, what, dir, path);
}

// Two gates, of which one or both count VOPs. Out of the way of a call that has one.
[[gnu::noinline]] static beginning pay_priced_pair(op_plan const& row, call id, core::op what,
                                                   unsigned entry, std::uint64_t bytes,
                                                   bool aligned) {
  auto const units_for = [&](bool is_bytes, unsigned cost) {
    if (is_bytes) return bytes;
    return cost == 0 ? core::op_units : planned_price(cost, what, bytes, aligned);
  };
  abi::channel_counters& first = counters_of(*self.counters, row.first);
  abi::channel_counters& second = counters_of(*self.counters, row.second);
  std::uint64_t const one = units_for(row.first_bytes, row.cost.first);
  std::uint64_t const two = units_for(row.second_bytes, row.cost.second);
  if (!take_from_lease(first, row.first, one)) return {entry, begun::unclear};
  if (!take_from_lease(second, row.second, two)) {
    core::add_own(first.lease.tokens, one);
    return {entry, begun::unclear};
  }
  count_passed(first, row.first_bytes || row.cost.first != 0, one);
  count_passed(second, row.second_bytes || row.cost.second != 0, two);
  count_made(*self.counters, id);
  return {with_manner(entry, aligned), begun::passed};
}

[[gnu::always_inline]] inline beginning pay_at_gates(call id, core::op what, unsigned entry,
                                                     std::uint64_t bytes, bool aligned) {
  op_plan const* row = &stage.mine->plan[entry % plan_rows][static_cast<unsigned>(what)];
  __asm__("" : "+r"(row));  // or the compiler finds its address anew for each look
  if (row->second.counters != 0) return pay_priced_pair(*row, id, what, entry, bytes, aligned);
  abi::channel_counters& c = counters_of(*self.counters, row->first);
  std::uint64_t const units = planned_price(row->cost.first, what, bytes, aligned);
  if (!take_from_lease(c, row->first, units)) return {entry, begun::unclear};
  count_passed(c, true, units);
  count_made(*self.counters, id);
  return {with_manner(entry, aligned), begun::passed};
}

beginning pay_priced_read(call id, unsigned entry, std::uint64_t bytes, bool aligned) {
  return pay_at_gates(id, core::op::read, entry, bytes, aligned);
}

beginning pay_priced_write(call id, unsigned entry, std::uint64_t bytes, bool aligned) {
  return pay_at_gates(id, core::op::write, entry, bytes, aligned);
}

beginning pay_priced_op(call id, unsigned entry, core::op what) {
  return pay_at_gates(id, what, entry, 0, true);
}

beginning begin_on_path(call id, core::op what, int dir, char const* path) {
  if (!is_settled()) [[unlikely]]
    return {};
  if (is_due(self.memo)) [[unlikely]]
    return begin_with_clock(id, what, dir, path);
  return begin_known<false>(id, what, recall(self.memo, dir, path), 0);
}

beginning begin_on_fd(call id, core::op what, int fd) {
  return begin_known<false>(id, what, entry_at_once(fd), 0);
}

bool enter_place(visit& v, place where, unsigned entry) {
  if (!joined() && !join_thread()) return false;
  if (stage.has_prices && !core::is_aligned(where.low, v.bytes)) v.manner |= visit::unaligned;
  bool const is_fd = where.kind == place_kind::fd || where.kind == place_kind::fd_now;
  // What begin_on_path() knows of a name is its directory, and patterns ask for the name.
  if (entry == entry_unknown || (stage.has_path_globs && !is_fd)) entry = resolve(where);
  paths::note(v, entry, where);
  bool const may_sleep = where.kind != place_kind::fd_now;
  bool const ours = enter_found(v, entry, is_fd ? where.fd : -1, may_sleep, true);
  if (!may_sleep) v.delay = delay_after(where);
  if (ours) times::begin(v);
  return ours;
}

bool enter_entry(visit& v, unsigned entry, int fd, bool may_sleep) {
  if (!joined() && !join_thread()) return false;
  paths::note(v, entry, on_fd(fd));
  bool const ours = enter_found(v, entry, fd, may_sleep, true);
  if (ours) times::begin(v);
  return ours;
}

void count_error(call id) { add(self.counters->call[static_cast<unsigned>(id)].errors, 1); }

void note_moved(visit const& v, std::uint64_t moved) {
  if (v.path_slot != 0) paths::add_bytes(v, moved);
  if (stage.has_roles) roles::count_moved(v, moved);
}

// A file that was there, and is empty, counts as made.
[[gnu::noinline, gnu::cold]] static void note_made(int fd, visit const& v) {
  sys::file_identity file;
  if (!sys::identify(fd, "", sys::at_empty_path, file) || !S_ISREG(file.mode)) return;
  if (sys::size_of(fd) != 0) return;
  unsigned const entry = peek_fd(fd);
  unsigned const made = roles::class_of_made(entry >> entry_path_shift, file, v);
  set_fd(fd, (entry & 0xff) | made << entry_path_shift);
}

void opened(int fd, visit const& v) {
  if (!may_touch_table()) return;
  set_fd(fd, entry_of_newborn(v.entry));
  bool const may_be_new = stage.has_roles && fd >= 0 && (v.manner & visit::creates) != 0;
  if (may_be_new && roles::asks_maker()) note_made(fd, v);
}

// The kernel counts by thread what it asks devices to read for it, and the pages that it makes
// dirty.
void look_at_device(visit& v) {
  bool is_any = false;
  each_gate(v.rules, [&](unsigned gate) { is_any |= is_measured(v, gate); });
  bool const is_known = is_any && ask_device_work(v.before.work);
  v.before.of = is_known ? &self : nullptr;
  v.before.generation = stage.fork_page->generation.load(std::memory_order_relaxed);
  v.before.noted_read = self.noted_read;
  v.before.noted_written = self.noted_written;
  if (v.weight != 0 && is_any) v.began_ns = now_ns();
}

// The thread that ends the call may be another one: the child of a handler that forked in it, or
// one to which a library moved it. Nothing is asked of that one. What a handler's own calls have
// paid for meanwhile is not asked twice.
void note_device_work(visit& v) {
  core::device_work now;
  work_before const& then = v.before;
  if (then.of != &self || !ask_device_work(now) ||
      then.generation != stage.fork_page->generation.load(std::memory_order_relaxed))
    return;
  auto const since = [](std::uint32_t& noted, std::uint32_t noted_then, std::uint64_t work,
                        std::uint64_t work_then) {
    std::uint64_t const all = work > work_then ? work - work_then : 0;
    std::uint64_t const paid = std::uint64_t{noted - noted_then} * device_block;
    std::uint64_t const left = all > paid ? all - paid : 0;
    noted += static_cast<std::uint32_t>(left / device_block);
    return left;
  };
  v.did.read_bytes = since(self.noted_read, then.noted_read, now.read_bytes, then.work.read_bytes);
  v.did.written_bytes =
      since(self.noted_written, then.noted_written, now.written_bytes, then.work.written_bytes);
}

void leave(visit& v, bool failed, std::uint64_t moved) {
  if (v.weight != 0) times::note(v, failed, moved);
  if (failed) count_error(v.id);
  if (moved != 0) add(self.counters->call[static_cast<unsigned>(v.id)].bytes, moved);
  if (v.is_noted) note_moved(v, moved);
  if (v.bytes != moved || v.waited_early() || !v.did.is_none()) [[unlikely]]
    settle(v, moved);
}

void count_short(call id, core::op what, when delay, unsigned entry, std::uint64_t asked,
                 bool failed, std::uint64_t moved) {
  auto const kept = static_cast<std::uint16_t>(entry);
  visit v{id, what, delay, false, kept, asked, rules_met(what, entry)};
  if (stage.has_prices) v.manner = manner_of(entry);
  leave(v, failed, moved);
}

bool enter_second(visit& v, unsigned entry, int fd) {
  if (stage.has_prices && !core::is_aligned(0, v.bytes)) v.manner |= visit::unaligned;
  return enter_found(v, entry, fd, true, false);
}

void settle(visit& v, std::uint64_t moved) {
  abi::segment* const s = stage.active.load(std::memory_order_relaxed);
  if (s == nullptr || v.rules == 0) return;
  if (v.delay != when::never) v.delay = when::before;  // no cancellation after the fact
  v.manner |= visit::made;
  passage p{*s, v, -1, v.delay != when::never, 0};
  each_gate(v.rules, [&](unsigned gate) {
    if (!asks_size(v, gate)) return;
    unsigned const channel = gate & gate_channel;
    std::uint64_t const booked = units_of(v, gate, v.bytes), owed = units_owed(v, gate, moved);
    add(self.counters->channel[channel].amount, owed - booked);
    if ((gate & gate_counts) != 0) return settle_spared(p, channel, booked, owed);
    std::uint64_t const before_ns = p.waited_ns;
    if (owed <= booked)
      give_back(s->bucket[channel], booked - owed);
    else if (v.delay == when::never)
      core::book_debt(s->bucket[channel], owed - booked);
    else
      take_pieces(p, gate, owed - booked);
    count_late_wait(p, channel, p.waited_ns - before_ns);
  });
  count_call_wait(p);
}

void settle_after(call id, core::op what, int fd, std::uint64_t bytes, bool failed,
                  std::int64_t began_ns) {
  visit v{id, what, when::before, false, 0, bytes, 0};
  v.manner = visit::made;
  v.began_ns = began_ns;
  std::int64_t const ended_ns = began_ns > 0 ? now_ns() : 0;
  if (!enter_place(v, on_fd(fd))) return;
  if (v.weight != 0 && ended_ns != 0) v.began_ns += now_ns() - ended_ns;  // what it waited since
  leave(v, failed, bytes);
}

void charge_request(call id, bool reads, int fd, std::int64_t at, std::uint64_t size) {
  std::uint64_t const bytes = bytes_of_request(reads, fd, at, size);
  visit v{id, reads ? core::op::read : core::op::write, when::before, false, 0, bytes, 0};
  v.began_ns = visit::untimed;
  if (enter_place(v, on_fd_at(fd, at))) leave(v, false, bytes);
}

bool ask_device_work(core::device_work& work) {
  rusage seen = {};
  if (is_in_sandbox() || sys::failed(sys::call(SYS_getrusage, RUSAGE_THREAD, sys::as_long(&seen))))
    return false;
  work = {static_cast<std::uint64_t>(seen.ru_inblock) * device_block,
          static_cast<std::uint64_t>(seen.ru_oublock) * device_block};
  return true;
}

bool pay_ahead(int fd, std::uint64_t bytes) {
  if (!joined()) return false;
  visit v{call::posix_fadvise, core::op::read, when::before, false, 0, bytes, 0};
  if (!enter_found(v, entry_of_fd(fd), fd, false, false)) return true;  // nobody's business
  if (v.refused) return false;
  v.delay = when::never;
  if (v.bytes != bytes) settle(v, bytes);
  // The call that is being made does not pay for them again.
  if (stage.has_measured) self.noted_read += static_cast<std::uint32_t>(bytes / device_block);
  return true;
}

void charge(call id, core::op what, place const& where, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    visit v{id, what, when::before, false, 0, 0, 0};
    v.began_ns = visit::untimed;
    if (!enter_place(v, where)) return;
    leave(v, false, 0);
  }
}

}  // namespace sluice
