// SPDX-License-Identifier: Apache-2.0
// Problem: the rate of a bucket changes while thousands of threads wait on it.
// Idea: the bucket in shared memory, and its service curve S(t) = base + rate * (t - t0), published
// in a ring of four slots: the writer fills a free slot and then moves `gen`. Unlike with a
// sequence lock, a writer that dies half-way leaves the old curve in force and no reader ever
// hangs. A curve may end by itself: its later rates lie in the bucket, so no process has to be
// alive to end it. What stays true: S is exact modulo 2^64 for any rate and span (128-bit
// products), and nothing read from the words, garbage included, leads to undefined behaviour.
// Settings are clamped on reading.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::core {

using u128 = unsigned __int128;

constexpr std::uint64_t op_units = 1u << 20;           // an operation; a byte is one unit
constexpr std::int64_t short_slice_ns = 200'000'000;   // longest sleep when due within 2 s
constexpr std::int64_t long_slice_ns = 1'000'000'000;  // longest sleep at all
constexpr std::int64_t default_debt_ns = 200'000;
constexpr std::int64_t default_idle_ns = 50'000'000;
constexpr std::int64_t default_quantum_ns = 2'000'000;
constexpr std::uint64_t max_cap_units = std::uint64_t{1} << 60;
constexpr int retry_limit = 64;  // of every CAS loop: scribbled memory must not trap a guest

// What a curve is made of, besides where it starts. It pays `rate` until the lease ends, then
// `after_rate`, and from own_at_ns on `own_rate`: a holder's own share comes later than the end of
// what it was lent. Rates are units per ns with 40 fractional bits.
struct curve_settings {
  std::uint64_t rate_q40;
  std::uint64_t cap_units;    // what idle time is worth at most
  std::int64_t debt_ns;       // a ticket due within this passes without sleeping
  std::int64_t quantum_ns;    // larger requests are booked in pieces of this much time
  std::int64_t lease_end_ns;  // 0: never
  std::uint32_t
      after_lease;  // 0: after_rate, 1: open, calls pass uncharged and S goes on as before
  std::uint64_t after_rate_q40 = 0;
  std::int64_t own_at_ns = 0;  // 0: never; not before lease_end_ns
  std::uint64_t own_rate_q40 = 0;
};

// Whether the rate itself changes when the lease ends.
constexpr bool has_kinks(curve_settings const& s) {
  return s.lease_end_ns != 0 && s.after_lease == 0;
}

// The rate of `units` per `period_ns`; false when it cannot be represented.
constexpr bool make_rate(std::uint64_t units, std::uint64_t period_ns, std::uint64_t& rate_q40) {
  if (period_ns == 0) return false;
  u128 rate = ((u128(units) << 40) + period_ns / 2) / period_ns;
  if (rate > ~std::uint64_t{0} || (rate == 0 && units != 0)) return false;
  rate_q40 = static_cast<std::uint64_t>(rate);
  return true;
}

// Units a rate pays in a span, rounded down; saturates at max_cap_units.
constexpr std::uint64_t units_in(std::uint64_t rate_q40, std::int64_t span_ns) {
  if (span_ns <= 0) return 0;
  u128 units = (u128(static_cast<std::uint64_t>(span_ns)) * rate_q40) >> 40;
  return units > max_cap_units ? max_cap_units : static_cast<std::uint64_t>(units);
}

// min_cap: one unit of work, op_units for operations, 1 for bytes.
constexpr curve_settings default_settings(std::uint64_t rate_q40, std::uint64_t min_cap = 1) {
  std::uint64_t cap = units_in(rate_q40, default_idle_ns);
  return {rate_q40, cap < min_cap ? min_cap : cap, default_debt_ns, default_quantum_ns, 0, 0};
}

constexpr curve_settings clamped(curve_settings s) {
  if (s.cap_units < 1) s.cap_units = 1;
  if (s.cap_units > max_cap_units) s.cap_units = max_cap_units;
  if (s.debt_ns < 0) s.debt_ns = 0;
  if (s.debt_ns > long_slice_ns) s.debt_ns = long_slice_ns;
  if (s.quantum_ns < 0) s.quantum_ns = 0;
  if (s.quantum_ns > long_slice_ns) s.quantum_ns = long_slice_ns;
  if (s.lease_end_ns < 0) s.lease_end_ns = 0;
  s.after_lease &= 1;
  if (s.own_at_ns < 0 || !has_kinks(s)) s.own_at_ns = 0;
  if (s.own_at_ns != 0 && s.own_at_ns < s.lease_end_ns) s.own_at_ns = s.lease_end_ns;
  return s;
}

// One published curve.
struct curve_slot {
  std::atomic<std::uint64_t> base;  // S at t0
  std::atomic<std::uint64_t> frac;  // 40 bits below the unit, so re-anchoring loses nothing
  std::atomic<std::int64_t> t0_ns;
  std::atomic<std::uint64_t> rate_q40;
  std::atomic<std::uint64_t> cap_units;
  std::atomic<std::uint32_t> debt_ns;
  std::atomic<std::uint32_t> quantum_ns;
  std::atomic<std::int64_t> lease_end_ns;
  std::atomic<std::uint64_t> after_lease;
};

// What comes after its lease; on lines of its own, which no call reads while nothing has to wait.
struct curve_tail {
  std::atomic<std::uint64_t> after_rate_q40;
  std::atomic<std::int64_t> own_at_ns;
  std::atomic<std::uint64_t> own_rate_q40;
  std::uint64_t unused;
};

struct alignas(64) bucket {
  std::atomic<std::uint64_t> booked;  // units handed out, modulo 2^64
  std::atomic<std::uint64_t> known;   // lower bound of S + debt

  alignas(64) std::atomic<std::uint64_t> returned;  // units given back; they shift the curve
  std::atomic<std::int64_t> sleep_until;            // latest deadline of a sleeper
  std::atomic<std::uint64_t> returned_at_wake;      // `returned` when all were last woken
  std::atomic<std::int64_t> last_wake_ns;
  std::atomic<std::uint64_t> skipped;   // booked, but nobody's: forgotten idle time
  std::atomic<std::uint32_t> seq;       // futex word, bumped per wake
  std::atomic<std::int64_t> looked_ns;  // when somebody last looked for waiters who are gone

  alignas(64) std::atomic<std::uint32_t> gen;  // number of the current curve
  std::atomic<std::uint32_t> class_shift;      // 2^class_shift units share a bit of the wake mask
  std::atomic<std::uint32_t> leasing;          // somebody may hold a lease
  alignas(64) curve_slot ring[4];
  alignas(64) curve_tail tail[4];  // of the slot with the same number
};

static_assert(sizeof(curve_slot) == 64 && sizeof(curve_tail) == 32 && sizeof(bucket) == 576);
static_assert(std::is_standard_layout_v<bucket> && std::is_trivially_destructible_v<bucket>);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && offsetof(bucket, returned) == 64);

// a - b on the circle of 2^64 units.
constexpr std::int64_t distance(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a - b);
}

// The thread sanitizer does not model fences and warns; every shared word is atomic anyway.
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
inline void full_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void acquire_fence() { std::atomic_thread_fence(std::memory_order_acquire); }
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

constexpr std::uint64_t frac_mask = (std::uint64_t{1} << 40) - 1;

// One span of constant rate.
struct phase {
  std::uint64_t rate_q40;
  std::int64_t end_ns;  // INT64_MAX: no end
};

struct curve {
  std::uint64_t base;
  std::uint64_t frac;
  std::int64_t t0_ns;
  std::uint32_t gen;
  curve_settings set;

  // The phase in force right after `at_ns`.
  constexpr phase after(std::int64_t at_ns) const {
    std::int64_t const own_ns = set.own_at_ns == 0 ? INT64_MAX : set.own_at_ns;
    if (!has_kinks(set)) return {set.rate_q40, INT64_MAX};
    if (at_ns < set.lease_end_ns) return {set.rate_q40, set.lease_end_ns};
    if (at_ns < own_ns) return {set.after_rate_q40, own_ns};
    return {set.own_rate_q40, INT64_MAX};
  }
  // In 2^-40 units, since t0, with what was left of a unit then.
  constexpr u128 paid(std::int64_t now_ns) const {
    u128 sum = frac;
    for (std::int64_t from_ns = t0_ns; from_ns < now_ns;) {  // three phases at most
      phase const p = after(from_ns);
      std::int64_t const to_ns = now_ns < p.end_ns ? now_ns : p.end_ns;
      sum += u128(static_cast<std::uint64_t>(to_ns) - static_cast<std::uint64_t>(from_ns)) *
             p.rate_q40;
      from_ns = to_ns;
    }
    return sum;
  }
  constexpr std::uint64_t at(std::int64_t now_ns) const {
    return base + static_cast<std::uint64_t>(paid(now_ns) >> 40);
  }
  constexpr std::uint64_t frac_at(std::int64_t now_ns) const {
    return static_cast<std::uint64_t>(paid(now_ns)) & frac_mask;
  }
  // A ticket that starts below this passes: it is paid, or will be within debt_ns.
  constexpr std::uint64_t reach_at(std::int64_t now_ns) const { return at(now_ns + set.debt_ns); }
  constexpr std::uint64_t debt_units(std::int64_t now_ns) const {
    return units_in(after(now_ns).rate_q40, set.debt_ns);
  }
  constexpr bool is_open(std::int64_t now_ns) const {
    return set.after_lease != 0 && set.lease_end_ns != 0 && now_ns >= set.lease_end_ns;
  }
  // Rate 0 is a pause: nothing passes, whatever credit is left. What a later rate pays within
  // debt_ns may go ahead of it, as under any rate.
  constexpr bool stands(std::int64_t now_ns) const {
    return after(now_ns).rate_q40 == 0 && after(now_ns + set.debt_ns).rate_q40 == 0 &&
           !is_open(now_ns);
  }
  // From when on it pays by itself; INT64_MAX: never.
  constexpr std::int64_t pays_from(std::int64_t now_ns) const {
    phase p = after(now_ns);
    for (; p.rate_q40 == 0 && p.end_ns != INT64_MAX; p = after(now_ns)) now_ns = p.end_ns;
    return p.rate_q40 == 0 ? INT64_MAX : now_ns;
  }
};

// False when the writer lapped the reader again and again: the snapshot may then be torn.
inline bool read_curve(bucket const& b, curve& c) {
  constexpr auto relaxed = std::memory_order_relaxed;
  for (int i = 0; i < retry_limit; ++i) {
    std::uint32_t gen = b.gen.load(std::memory_order_acquire);
    curve_slot const& s = b.ring[gen & 3];
    c.base = s.base.load(relaxed);
    c.frac = s.frac.load(relaxed) & frac_mask;
    c.t0_ns = s.t0_ns.load(relaxed);
    c.gen = gen;
    curve_settings set{
        s.rate_q40.load(relaxed),     s.cap_units.load(relaxed),
        s.debt_ns.load(relaxed),      s.quantum_ns.load(relaxed),
        s.lease_end_ns.load(relaxed), static_cast<std::uint32_t>(s.after_lease.load(relaxed))};
    if (has_kinks(set)) {
      curve_tail const& t = b.tail[gen & 3];
      set.after_rate_q40 = t.after_rate_q40.load(relaxed);
      set.own_at_ns = t.own_at_ns.load(relaxed);
      set.own_rate_q40 = t.own_rate_q40.load(relaxed);
    }
    c.set = clamped(set);
    acquire_fence();
    if (b.gen.load(relaxed) - gen < 3) return true;
  }
  return false;
}

inline curve_settings current(bucket const& b) {
  curve c;
  read_curve(b, c);
  return c.set;
}

// What the bucket pays at a time, its lease considered.
inline std::uint64_t rate_at(bucket const& b, std::int64_t now_ns) {
  curve c;
  read_curve(b, c);
  return c.after(now_ns).rate_q40;
}

inline std::atomic<std::uint32_t>& futex_word(bucket& b) { return b.seq; }

}  // namespace sluice::core
