// SPDX-License-Identifier: Apache-2.0
// Problem: many threads of many processes share one rate, and most calls must pay next to nothing.
// Idea: a call books a ticket (a place in the sequence of all units) with one fetch_add; a service
// curve S(t) says up to which unit the rate has paid. `known` caches a lower bound of S, so a call
// whose ticket ends below it passes without a clock. Everybody else compares with S and sleeps on
// the futex word until the curve reaches the start of the ticket.
// What stays true: S never falls; a window admits at most what the rate paid in it, plus the idle
// cap, plus one request; at rate 0 nothing passes; tickets pass in order; a thread or the writer
// killed between any two instructions leaves every word valid; garbage in the words gives wrong
// waits, never undefined behaviour, an endless loop or a sleep above one second. No clock, heap,
// errno or global here.
// A thread that is stopped between its look at the floor and its booking takes a place from before
// the time that it stood still. So a window admits one more request for each such thread.
#pragma once

#include <cstdint>

#include "service_curve.h"

namespace sluice::core {

struct ticket {
  std::uint64_t start;
  std::uint64_t cost;
  bool first;  // decide() has not looked at it yet
};

struct decision {
  enum kind : std::uint8_t { pass, pass_open, wait, again } what;
  std::uint32_t seq;  // wait: FUTEX_WAIT_BITSET(futex_word, seq, deadline_ns, mask)
  std::uint32_t mask;
  std::int64_t deadline_ns;
};

// Each rule was found by a broken bound; the property test switches them off one by one.
struct rules {
  bool end_on_fast_path = true;     // pass without a clock only if the END of the ticket is paid
  bool rebook_own_cost = true;      // after idleness book again at the floor, cost included
  bool floor_leaves_cache = true;   // the floor leaves room for what `known` may cache
  bool known_near_booked = true;    // `known` caches at most a quarter of the cap
  bool floor_leaves_leases = true;  // and for what leases may hold
  bool stands_at_zero = true;       // at rate 0 credit is neither spent nor cached
};

// The oldest unit a new ticket may claim: idle time before it is forgotten.
template <rules R = rules{}>
std::uint64_t floor_of(curve const& c, std::uint64_t s, bool leasing) {
  std::uint64_t worth = c.set.cap_units;
  if (R.floor_leaves_cache) worth -= c.set.cap_units / 4;
  if (R.floor_leaves_leases && leasing) worth -= c.set.cap_units / 4;
  return s - worth;
}

// A place below the floor is forgotten idle time. So is one that seems 2^62 units ahead: nobody
// gets there, but a bucket idle for months at a high rate wraps around to it.
inline bool forgotten(std::uint64_t place, std::uint64_t floor, std::uint64_t s) {
  return distance(floor, place) > 0 || distance(place, s) > (std::int64_t{1} << 62);
}

// ---------------------------------------------------------------------------- taking

// The fast path: true means passed, false means go on with decide().
template <rules R = rules{}>
bool book(bucket& b, std::uint64_t cost, ticket& t) {
  t.start = b.booked.fetch_add(cost, std::memory_order_relaxed);
  t.cost = cost;
  t.first = true;
  std::uint64_t known = b.known.load(std::memory_order_relaxed);
  return distance(known, R.end_on_fast_path ? t.start + cost : t.start) >= 0;
}

// Charged and never delayed (close, late corrections): whoever comes next pays.
inline void book_debt(bucket& b, std::uint64_t cost) {
  b.booked.fetch_add(cost, std::memory_order_relaxed);
}

// Moves a ticket out of forgotten idle time; where others have booked since, after them, for
// nobody waits for his own cost. Gives up under endless contention: the old ticket is far in
// the past and passes.
template <rules R = rules{}>
void rebook(bucket& b, ticket& t, std::uint64_t floor, std::uint64_t s) {
  std::uint64_t const charge = R.rebook_own_cost ? t.cost : 0;
  std::uint64_t seen = b.booked.load(std::memory_order_relaxed);
  for (int i = 0; i < retry_limit; ++i) {
    bool const is_last = seen == t.start + t.cost;
    std::uint64_t place = is_last || forgotten(seen, floor, s) ? floor : seen;
    if (b.booked.compare_exchange_weak(seen, place + charge, std::memory_order_relaxed)) {
      b.skipped.fetch_add(place - seen + t.cost, std::memory_order_relaxed);
      t.start = place;
      return;
    }
  }
}

// Nanoseconds from `now_ns` until the curve has paid `debt` (> 0) more units than at(now_ns), by
// whatever rates come; rounded up, at most `most_ns`.
constexpr std::int64_t wait_for(curve const& c, std::uint64_t debt, std::int64_t now_ns,
                                std::int64_t most_ns) {
  u128 wanted = (u128(debt) << 40) - c.frac_at(now_ns);
  std::int64_t waited_ns = 0;
  if (now_ns < c.t0_ns) {  // nothing is paid before the curve starts
    waited_ns = c.t0_ns - now_ns;
    if (waited_ns >= most_ns) return most_ns;
  }
  for (;;) {  // three phases at most
    phase const p = c.after(now_ns + waited_ns);
    std::int64_t span_ns = most_ns - waited_ns;
    bool const ends = p.end_ns != INT64_MAX && p.end_ns - now_ns - waited_ns < span_ns;
    if (ends) span_ns = p.end_ns - now_ns - waited_ns;
    u128 const paid = u128(p.rate_q40) * static_cast<std::uint64_t>(span_ns);
    if (wanted <= paid)
      return waited_ns + static_cast<std::int64_t>((wanted + p.rate_q40 - 1) / p.rate_q40);
    if (!ends) return most_ns;
    wanted -= paid;
    waited_ns += span_ns;
  }
}

// Nanoseconds until a curve that stands pays again, at most `most_ns`.
constexpr std::int64_t pause_left(curve const& c, std::int64_t now_ns, std::int64_t most_ns) {
  std::int64_t const from_ns = c.pays_from(now_ns);
  return from_ns == INT64_MAX || from_ns - now_ns > most_ns ? most_ns : from_ns - now_ns;
}

// Tells wakers that somebody sleeps until `deadline_ns`.
inline void announce(bucket& b, std::int64_t deadline_ns, std::int64_t now_ns) {
  std::int64_t seen = b.sleep_until.load(std::memory_order_relaxed);
  for (int i = 0; i < retry_limit; ++i) {
    bool garbage = seen - 2 * long_slice_ns > now_ns;
    if (seen >= deadline_ns && !garbage) return;
    if (b.sleep_until.compare_exchange_weak(seen, deadline_ns, std::memory_order_relaxed)) return;
  }
}

constexpr std::int64_t sane_time(std::int64_t ns) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  return ns < 0 ? 0 : ns > most ? most : ns;
}

inline std::uint32_t class_bit(bucket const& b, std::uint64_t place) {
  std::uint32_t shift = b.class_shift.load(std::memory_order_relaxed) & 63;
  return 1u << ((place >> shift) & 31);
}

// Looks at the curve for a ticket that book() did not pass. `now_ns` must be read just before.
// wait: sleep as described at `decision`, then call again; again: call again at once with a new
// clock reading. `slack_ns` is the thread's timer slack: the alarm is set that much earlier.
template <rules R = rules{}>
decision decide(bucket& b, ticket& t, std::int64_t now_ns, std::int64_t slack_ns) {
  constexpr auto relaxed = std::memory_order_relaxed;
  constexpr decision passed{decision::pass, 0, 0, 0};
  now_ns = sane_time(now_ns);
  // seq before the curve: whoever sees a new seq sees the new curve, whoever saw the old seq is
  // refused by the futex or woken.
  std::uint32_t const seq = b.seq.load(std::memory_order_acquire);
  curve c;
  if (!read_curve(b, c)) return passed;
  std::uint64_t const returned = b.returned.load(relaxed);
  std::uint64_t const s = c.at(now_ns) + returned;
  if (t.first) {
    std::uint64_t floor = floor_of<R>(c, s, b.leasing.load(relaxed) != 0);
    if (forgotten(t.start, floor, s)) rebook<R>(b, t, floor, s);
    t.first = false;
  }
  bool const stands = R.stands_at_zero && c.stands(now_ns);
  std::uint64_t const reach = c.reach_at(now_ns) + returned;
  std::uint64_t known = reach;
  if (R.known_near_booked) {
    std::uint64_t near = b.booked.load(relaxed) + (stands ? 0 : c.set.cap_units / 4);
    if (distance(near, reach) < 0) known = near;
  }
  b.known.store(known, relaxed);
  // The START is tested here: one request may overdraw, the next one waits for it.
  bool const is_due = distance(reach, t.start) >= 0;
  if (is_due && !stands) return passed;
  if (c.is_open(now_ns)) {
    // Not charged: the next curve must not inherit a debt from the time without a limit.
    b.returned.fetch_add(t.cost, relaxed);
    return {decision::pass_open, 0, 0, 0};
  }
  std::int64_t wait_ns = is_due ? pause_left(c, now_ns, 2 * long_slice_ns)
                                : wait_for(c, t.start - s, now_ns, 2 * long_slice_ns);
  std::int64_t const slice = wait_ns < 2 * long_slice_ns ? short_slice_ns : long_slice_ns;
  if (slack_ns < 0) slack_ns = 0;
  if (slack_ns > c.set.debt_ns / 2) slack_ns = c.set.debt_ns / 2;  // earlier would be too early
  wait_ns -= slack_ns;
  if (wait_ns > slice) wait_ns = slice;
  bool const opens = c.set.after_lease != 0 && c.set.lease_end_ns != 0;
  if (opens && wait_ns > c.set.lease_end_ns - now_ns) wait_ns = c.set.lease_end_ns - now_ns;
  decision d{decision::wait, seq, class_bit(b, t.start), now_ns + wait_ns};
  announce(b, d.deadline_ns, now_ns);
  full_fence();  // pairs with the wakers': one of the two sees the other
  bool const moved = b.returned.load(relaxed) != returned || b.gen.load(relaxed) != c.gen ||
                     b.seq.load(relaxed) != seq;
  if (moved) d.what = decision::again;
  return d;
}

// How long this ticket will wait on the current curve, for reports.
inline std::int64_t due_ns(bucket const& b, ticket const& t, std::int64_t now_ns) {
  curve c;
  read_curve(b, c);
  std::int64_t const at_ns = sane_time(now_ns) + c.set.debt_ns;
  std::int64_t debt = distance(t.start, c.at(at_ns) + b.returned.load(std::memory_order_relaxed));
  if (debt <= 0) return c.stands(sane_time(now_ns)) ? pause_left(c, at_ns, INT64_MAX) : 0;
  return wait_for(c, static_cast<std::uint64_t>(debt), at_ns, INT64_MAX);
}

// ---------------------------------------------------------------------------- large requests

// By the rate of the lease, without a look at its end or at `gen`: a quantum need not be exact.
inline std::uint64_t quantum_units(bucket const& b) {
  constexpr auto relaxed = std::memory_order_relaxed;
  std::uint32_t const slot = b.gen.load(relaxed) & 3;
  std::uint64_t rate = b.ring[slot].rate_q40.load(relaxed);
  if (rate == 0) rate = b.tail[slot].after_rate_q40.load(relaxed);
  if (rate == 0) rate = b.tail[slot].own_rate_q40.load(relaxed);
  std::uint32_t const span_ns = b.ring[slot].quantum_ns.load(relaxed);
  std::uint64_t units = units_in(rate, span_ns > long_slice_ns ? long_slice_ns : span_ns);
  return units < 1 ? 1 : units;
}

// The next piece of a large request; ask again for each piece, the rate may have changed. `least`
// keeps a piece from being smaller than what the bucket counts (op_units for operations).
inline std::uint64_t next_piece(bucket const& b, std::uint64_t left, std::uint64_t least = 1) {
  std::uint64_t units = quantum_units(b);
  if (units < least) units = least;
  return left < units ? left : units;
}

// ---------------------------------------------------------------------------- giving back

// Gives units back by shifting the curve; lowering `booked` would hand out tickets that sleepers
// already hold. True: seq was bumped, the caller wakes all. Waking is worth it only for a gain
// above the debt, and at most once per debt_ns; without it a sleeper learns at its next slice.
inline bool refund(bucket& b, std::uint64_t units, std::int64_t now_ns) {
  constexpr auto relaxed = std::memory_order_relaxed;
  now_ns = sane_time(now_ns);
  std::uint64_t returned = b.returned.fetch_add(units, std::memory_order_release) + units;
  full_fence();
  if (b.sleep_until.load(relaxed) <= now_ns) {
    b.returned_at_wake.store(returned, relaxed);
    return false;
  }
  curve c;
  read_curve(b, c);
  std::uint64_t seen = b.returned_at_wake.load(relaxed);
  if (returned - seen <= c.debt_units(now_ns)) return false;
  std::int64_t last = sane_time(b.last_wake_ns.load(relaxed));
  if (now_ns >= last && now_ns - last < c.set.debt_ns) return false;
  if (!b.returned_at_wake.compare_exchange_strong(seen, returned, relaxed)) return false;
  b.last_wake_ns.store(now_ns, relaxed);
  b.seq.fetch_add(1, std::memory_order_release);
  return true;
}

// Up to which unit the curve has paid.
inline std::uint64_t paid_units(bucket const& b, std::int64_t now_ns) {
  curve c;
  read_curve(b, c);
  return c.at(sane_time(now_ns)) + b.returned.load(std::memory_order_relaxed);
}

// A ticket whose holder left without his call, for refund(): what those after it still wait for
// because of it. What the curve has paid of it is lost, and nobody's. 0 too for what nobody booked.
inline std::uint64_t write_off(bucket& b, std::uint64_t start, std::uint64_t cost,
                               std::int64_t now_ns) {
  constexpr auto relaxed = std::memory_order_relaxed;
  std::uint64_t const end = start + cost;
  if (cost > max_cap_units || distance(b.booked.load(relaxed), end) < 0) return 0;
  std::int64_t const left = distance(end, paid_units(b, now_ns));
  std::uint64_t units = left < 0 ? 0 : static_cast<std::uint64_t>(left);
  if (units > cost) units = cost;
  if (units != cost) b.skipped.fetch_add(cost - units, relaxed);
  return units;
}

// Whether the caller is to look for waiters who are gone: one of all, now and then.
constexpr std::int64_t looks_apart_ns = 100'000'000;
inline bool may_look(bucket& b, std::int64_t now_ns) {
  std::int64_t seen = b.looked_ns.load(std::memory_order_relaxed);
  std::int64_t const since_ns = sane_time(now_ns) - sane_time(seen);
  if (since_ns >= 0 && since_ns < looks_apart_ns) return false;
  return b.looked_ns.compare_exchange_strong(seen, now_ns, std::memory_order_relaxed);
}

// Whether who books now has his turn at once, as decide() would say. Nothing is booked: what is
// booked and given back moves all who wait before it.
inline bool has_turn(bucket const& b, std::int64_t now_ns) {
  constexpr auto relaxed = std::memory_order_relaxed;
  now_ns = sane_time(now_ns);
  curve c;
  if (!read_curve(b, c) || c.is_open(now_ns)) return true;
  if (c.stands(now_ns)) return false;
  std::uint64_t const returned = b.returned.load(relaxed), s = c.at(now_ns) + returned;
  std::uint64_t const booked = b.booked.load(relaxed);
  return forgotten(booked, floor_of(c, s, b.leasing.load(relaxed) != 0), s) ||
         distance(c.reach_at(now_ns) + returned, booked) >= 0;
}

// ---------------------------------------------------------------------------- leases

// Tokens set aside by one thread, so that the shared word stays cold while no limit binds. A new
// curve voids it. After fork the child must forget its copy (assign lease{}), not drop it.
struct lease {
  std::uint64_t tokens;
  std::uint32_t gen;
};

// A lease lasts for so many equal calls, where the share of a thread allows it.
inline constexpr std::uint64_t lease_calls = 256;

// Adds to a word of the calling thread in one instruction, so that a signal handler of the same
// thread, which may do I/O and spend from the same lease, loses nothing. Returns the old value.
inline std::uint64_t add_own(std::uint64_t& word, std::uint64_t n) {
#if defined(__x86_64__)
  __asm__("xaddq %1, %0" : "+m"(word), "+r"(n) : : "cc");
  return n;
#else
  return __atomic_fetch_add(&word, n, __ATOMIC_RELAXED);
#endif
}

// Spends from the lease; false: it does not hold that much. Taken first and looked at afterwards:
// in between the lease may be negative, and a handler then finds nothing in it.
inline bool spend(lease& l, std::uint64_t cost) {
  auto const had = static_cast<std::int64_t>(add_own(l.tokens, -cost));
  if (had >= 0 && static_cast<std::uint64_t>(had) >= cost) return true;
  add_own(l.tokens, cost);
  return false;
}

inline void drop_lease(bucket& b, lease& l) {
  std::uint64_t const held = l.tokens;
  if (held != 0) b.returned.fetch_add(held, std::memory_order_relaxed);
  add_own(l.tokens, -held);
}

// True: passed. False: go on with decide(). `sharers`: threads that may hold a lease here.
inline bool take_leased(bucket& b, lease& l, std::uint64_t cost, std::uint32_t sharers, ticket& t) {
  constexpr auto relaxed = std::memory_order_relaxed;
  std::uint32_t const gen = b.gen.load(relaxed);
  if (l.gen == gen && spend(l, cost)) return true;
  if (l.gen != gen) drop_lease(b, l);
  l.gen = gen;
  std::uint64_t cap = b.ring[gen & 3].cap_units.load(relaxed);
  if (cap > max_cap_units) cap = max_cap_units;
  std::uint64_t size = cap / 4 / (sharers == 0 ? 1 : sharers);
  if (cost < size / lease_calls) size = cost * lease_calls;
  if (size / 2 < cost) return book(b, cost, t);
  // Only out of credit, so never at saturation. The flag comes first: whoever computes a floor
  // after a lease was taken must leave room for it.
  std::uint64_t const wanted = cost + size - l.tokens;
  if (distance(b.known.load(relaxed), b.booked.load(relaxed) + wanted) < 0) return book(b, cost, t);
  if (b.leasing.load(relaxed) == 0) b.leasing.store(1);
  t = {b.booked.fetch_add(wanted, relaxed), cost, true};
  if (distance(b.known.load(relaxed), t.start + wanted) >= 0) {
    add_own(l.tokens, wanted - cost);
    return true;
  }
  b.returned.fetch_add(wanted - cost, relaxed);
  return false;
}

// ---------------------------------------------------------------------------- the one writer

inline void store_curve(bucket& b, unsigned slot, curve const& c) {
  constexpr auto relaxed = std::memory_order_relaxed;
  curve_slot& s = b.ring[slot];
  curve_tail& t = b.tail[slot];
  curve_settings const& set = c.set;
  s.base.store(c.base, relaxed);
  s.frac.store(c.frac, relaxed);
  s.t0_ns.store(c.t0_ns, relaxed);
  s.rate_q40.store(set.rate_q40, relaxed);
  s.cap_units.store(set.cap_units, relaxed);
  s.debt_ns.store(static_cast<std::uint32_t>(set.debt_ns), relaxed);
  s.quantum_ns.store(static_cast<std::uint32_t>(set.quantum_ns), relaxed);
  s.lease_end_ns.store(set.lease_end_ns, relaxed);
  s.after_lease.store(set.after_lease, relaxed);
  t.after_rate_q40.store(set.after_rate_q40, relaxed);
  t.own_at_ns.store(set.own_at_ns, relaxed);
  t.own_rate_q40.store(set.own_rate_q40, relaxed);
}

// Before anybody else sees the bucket. `origin`: the first unit, for tests of the wrap.
inline void init(bucket& b, curve_settings const& settings, std::int64_t now_ns,
                 std::uint64_t origin = 0) {
  curve_settings const set = clamped(settings);
  b.booked.store(origin);
  b.known.store(origin);
  b.returned.store(0);
  b.sleep_until.store(0);
  b.returned_at_wake.store(0);
  b.last_wake_ns.store(0);
  b.skipped.store(origin);  // so that served_units() starts at 0
  b.seq.store(0);
  b.looked_ns.store(0);
  b.leasing.store(0);
  std::uint64_t width = set.rate_q40 == 0 ? op_units : units_in(set.rate_q40, long_slice_ns) / 4;
  std::uint32_t shift = 0;
  while (shift < 59 && (width >> shift) > 1) ++shift;
  b.class_shift.store(shift);  // fixed: sleepers of an older curve must be found by it
  curve const first{origin, 0, sane_time(now_ns), 0, set};
  for (unsigned slot = 0; slot < 4; ++slot) store_curve(b, slot, first);
  b.gen.store(0, std::memory_order_release);
}

// The classes of all tickets in [from, from + span].
inline std::uint32_t class_mask(bucket const& b, std::uint64_t from, std::uint64_t span) {
  std::uint32_t shift = b.class_shift.load(std::memory_order_relaxed) & 63;
  if ((span >> shift) >= 31) return ~0u;
  std::uint32_t mask = 0;
  std::uint64_t const first = from >> shift;
  std::uint64_t const count = (span >> shift) + 1;
  for (std::uint64_t i = 0; i <= count; ++i) mask |= 1u << ((first + i) & 31);
  return mask;
}

// Whether `now` passes any ticket before `before` would, up to `until_ns`. Both are straight
// between their kinks, so it is enough to look there.
inline bool passes_earlier(curve const& before, curve const& now, std::int64_t now_ns,
                           std::int64_t until_ns) {
  std::int64_t const points[] = {now_ns,
                                 before.set.lease_end_ns - before.set.debt_ns,
                                 before.set.own_at_ns - before.set.debt_ns,
                                 now.set.lease_end_ns - now.set.debt_ns,
                                 now.set.own_at_ns - now.set.debt_ns,
                                 until_ns};
  u128 const paid = before.paid(now_ns) - now.frac;
  for (std::int64_t at_ns : points)
    if (at_ns >= now_ns && at_ns <= until_ns &&
        now.paid(at_ns + now.set.debt_ns) + paid > before.paid(at_ns + before.set.debt_ns))
      return true;
  return false;
}

// Who must be woken because `now` pays faster than `before`: those due before the last alarm set.
inline std::uint32_t wake_mask(bucket& b, curve const& before, curve const& now,
                               std::int64_t now_ns) {
  constexpr auto relaxed = std::memory_order_relaxed;
  bool const opens = now.set.after_lease != 0 && now.set.lease_end_ns != 0 &&
                     (before.set.after_lease == 0 || before.set.lease_end_ns == 0 ||
                      now.set.lease_end_ns < before.set.lease_end_ns);
  std::int64_t until_ns = b.sleep_until.load(relaxed);
  if (until_ns <= now_ns) return 0;
  if (opens) return ~0u;
  if (until_ns - now_ns > long_slice_ns) until_ns = now_ns + long_slice_ns;
  // Whoever met a pause may be due already, any distance below the curve.
  if (before.stands(now_ns) && now.pays_from(now_ns) < before.pays_from(now_ns)) return ~0u;
  if (!passes_earlier(before, now, now_ns, until_ns)) return 0;
  // A refund that woke nobody, and alarms set early, leave sleepers below the curve.
  std::uint64_t returned = b.returned.load(relaxed);
  std::uint64_t below = returned - b.returned_at_wake.load(relaxed);
  if (below > max_cap_units) return ~0u;
  below += units_in(before.set.rate_q40, before.set.debt_ns + short_slice_ns / 100);
  std::uint64_t span = below + now.reach_at(until_ns) - now.at(now_ns);
  return class_mask(b, now.at(now_ns) + returned - below, span);
}

// Starts a new curve where the old one is: no burst, no stall. Returns the mask to wake, 0 for
// none; seq is bumped already. One writer at a time.
inline std::uint32_t set_curve(bucket& b, curve_settings const& settings, std::int64_t now_ns) {
  constexpr auto relaxed = std::memory_order_relaxed;
  curve before;
  read_curve(b, before);
  now_ns = sane_time(now_ns);
  if (now_ns < before.t0_ns) now_ns = sane_time(before.t0_ns);
  u128 const paid = before.paid(now_ns);
  curve now{before.base + static_cast<std::uint64_t>(paid >> 40),
            static_cast<std::uint64_t>(paid) & frac_mask, now_ns, before.gen + 1,
            clamped(settings)};
  // Idle time the old curve has forgotten must not come back under a larger cap.
  std::uint64_t const s = now.base + b.returned.load(relaxed);
  std::uint64_t const floor = floor_of(before, s, b.leasing.load(relaxed) != 0);
  std::uint64_t seen = b.booked.load(relaxed);
  for (int i = 0; i < retry_limit && forgotten(seen, floor, s); ++i) {
    if (!b.booked.compare_exchange_weak(seen, floor, relaxed)) continue;
    b.skipped.fetch_add(floor - seen, relaxed);
    break;
  }
  full_fence();  // the slot's old curve must not be overwritten before its successors are seen
  store_curve(b, now.gen & 3, now);
  b.gen.store(now.gen, std::memory_order_release);
  // Credit cached under the old curve is void: a pause must bite at once.
  std::uint64_t const end = b.booked.load(relaxed);
  b.known.store(distance(end, s) < 0 ? end : s, relaxed);
  full_fence();
  std::uint32_t const mask = wake_mask(b, before, now, now_ns);
  if (mask == 0) return 0;
  if (mask == ~0u) b.returned_at_wake.store(b.returned.load(relaxed), relaxed);
  b.seq.fetch_add(1, std::memory_order_release);
  return mask;
}

// ---------------------------------------------------------------------------- looking

// Units taken and paid for since init(), without what still waits, was given back or passed open. A
// request that has just started counts as far as the curve has paid it.
inline std::uint64_t served_units(bucket const& b, std::int64_t now_ns) {
  curve c;
  read_curve(b, c);
  std::uint64_t const returned = b.returned.load(std::memory_order_relaxed);
  std::uint64_t const booked = b.booked.load(std::memory_order_relaxed);
  std::uint64_t const reach = c.reach_at(sane_time(now_ns)) + returned;
  std::uint64_t const served = distance(booked, reach) > 0 ? reach : booked;
  return served - returned - b.skipped.load(std::memory_order_relaxed);
}

}  // namespace sluice::core
