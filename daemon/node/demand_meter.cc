// SPDX-License-Identifier: Apache-2.0
#include "node/demand_meter.h"

#include <thread>

#include "core/token_bucket.h"
#include "core/would_wait.h"
#include "segment/curve.h"
#include "segment/sums.h"

namespace sluice::node {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint64_t most_waiting = std::uint64_t{1} << 50;
constexpr std::int64_t short_wait_ns = 10'000'000;  // as long as the shortest look counts
constexpr std::uint64_t most_waits = 100'000'000;   // that end between two looks
constexpr std::uint64_t longest_wait_ns = 3600ull * second_ns;  // at most `threads` sleep at once
constexpr std::uint64_t most_ops = 4096ull * core::op_units;    // one large request: by rows of
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;    // calls.def, by what read(2) moves
constexpr std::uint64_t most_vops = 1'000'000ull * core::milli_per_vop;
/// That a processor can do in a second, milli-tokens: no call is shorter than 200 ns.
constexpr rate most_of_processor[core::unit_count] = {5'000'000'000, 50'000'000'000'000,
                                                      20'000'000'000};
constexpr std::uint64_t most_of_one[core::unit_count] = {most_ops, most_bytes, most_vops};

std::uint64_t bounded_q40(unit_kind unit, rate r) {
  return q40_of(unit, std::min(r, possible(unit)));
}

}  // namespace

rate possible(unit_kind unit) {
  static rate const processors = std::max(std::thread::hardware_concurrency(), 1u);
  return processors * most_of_processor[static_cast<unsigned>(unit) % core::unit_count];
}

double possible_in(unit_kind unit, double span_s) {
  return tokens(possible(unit)) * span_s +
         static_cast<double>(most_of_one[static_cast<unsigned>(unit) % core::unit_count]) /
             static_cast<double>(core::row_of(unit).token);
}

sample look(foreign<abi::segment> const& s, unsigned channel, look_depth depth,
            std::int64_t now_ns) {
  core::bucket const& b = as_shared(s.bucket[channel]);
  core::curve c;
  sample out;
  if (!core::read_curve(b, c)) return out;
  std::uint64_t const reach = c.at(core::sane_time(now_ns)) + b.returned.load(relaxed) +
                              c.debt_units(core::sane_time(now_ns));
  std::int64_t const beyond = core::distance(b.booked.load(relaxed), reach);
  out.served_units = core::served_units(b, now_ns);
  // At rate 0 even those wait who have credit.
  if (beyond <= 0 && !c.stands(core::sane_time(now_ns))) return out;
  // A large request may have overdrawn without anybody waiting after it: ask who waits.
  segment::waiting who = {0, 0, false};
  if (depth == look_depth::threads) who = segment::who_waits(s, channel);
  out.waiters = who.waiters;
  out.blocked = who.waiters != 0 || (!who.sees_everyone && beyond > 0);
  std::uint64_t const waiting = beyond > 0 ? static_cast<std::uint64_t>(beyond) : who.units;
  if (out.blocked) out.waiting_units = std::min(waiting, most_waiting);
  return out;
}

sample look_watched(foreign<abi::segment> const& s, unsigned channel, std::int64_t now_ns) {
  auto const unit = static_cast<unit_kind>(s.rules.channel[channel].unit);
  sample out;
  out.served_units = segment::sum_channel(s, channel).amount * core::token_units(unit) /
                     core::row_of(unit).counted;
  core::curve c;
  if (!core::read_curve(as_shared(s.bucket[channel]), c)) return out;
  std::int64_t const beyond_ns =
      core::beyond_full_ns(s.channel[channel].full_until_ns.load(relaxed), c, now_ns);
  if (beyond_ns <= 0) return out;
  out.blocked = true;
  out.waiters = 1;
  out.waiting_units =
      std::min(core::units_in(c.after(core::sane_time(now_ns)).rate_q40, beyond_ns), most_waiting);
  return out;
}

std::uint64_t waits_so_far(foreign<abi::segment> const& s, unsigned channel) {
  std::uint64_t sum = s.channel[channel].spared_calls.load(relaxed);
  for (auto const& step : s.channel[channel].waits.count) sum += step.load(relaxed);
  return sum;
}

void tally::add(figures const& f, std::int64_t span_ns, rate beyond) {
  paid_units_ += f.served_units;
  if (span_ns <= 0) return;
  done_.blocked_ns += portion(f.blocked_ppm, static_cast<rate>(span_ns), 1'000'000);
  beyond_ += tokens(beyond) * static_cast<double>(span_ns) / 1e9;
  done_.beyond = std::min(beyond_, static_cast<double>(done_.served));
}

void tally::look(unit_kind unit, segment::channel_sums const& now, bool waits,
                 std::uint32_t threads) {
  std::uint64_t const paid = paid_units_ / core::token_units(unit);
  std::uint64_t const told = (now.amount - first_.amount) / core::row_of(unit).counted;
  // What was paid in advance before the wait is still that, or was given back.
  if (!waits) in_advance_ = paid > told ? paid - told : 0;
  std::uint64_t const moved = waits ? paid - std::min(paid, in_advance_) : 0;
  done_.served = std::max({done_.served, std::min(paid, told), moved});
  done_.beyond = std::min(beyond_, static_cast<double>(done_.served));
  std::uint64_t const waits_ended = now.delayed - last_.delayed;
  if (waits_ended < most_waits) done_.delayed += waits_ended;
  if (now.waited_ns > last_.waited_ns)
    done_.waited_ns += std::min(now.waited_ns - last_.waited_ns,
                                longest_wait_ns * std::max<std::uint64_t>(threads, 1));
  last_ = now;
}

void demand_meter::start(sample const& s, std::uint64_t waits, std::int64_t now_ns) {
  *this = {};
  last_ = s;
  begin_units_ = s.served_units;
  begin_waits_ = waits;
  begin_ns_ = last_ns_ = quiet_since_ns_ = now_ns;
}

bool demand_meter::falls_quiet(sample const& s, std::int64_t now_ns) {
  if (s.blocked || s.served_units != last_.served_units) {
    quiet_since_ns_ = now_ns;
    is_quiet_ = false;
  }
  bool const waited = was_blocked_ || has_blocked_;
  if (is_quiet_ || !waited || now_ns - quiet_since_ns_ < quiet_ns) return false;
  return is_quiet_ = true;
}

bool demand_meter::tick(sample const& s, rate paying, std::int64_t now_ns) {
  if (now_ns < begin_ns_) return false;
  bool const fall = falls_quiet(s, now_ns);
  last_ = s;
  most_ = std::max(most_, paying);
  paying_ = paying;
  std::int64_t const passed_ns = std::max<std::int64_t>(now_ns - last_ns_, 0);
  last_ns_ = now_ns;
  looked_ns_ += passed_ns;
  bool const edge = s.blocked && !has_blocked_ && !was_blocked_;
  if (s.blocked) {
    has_blocked_ = true;
    blocked_ns_ += passed_ns;
  }
  return edge || fall;
}

/// What a stream can have been served at most. The burst and one large request may go ahead of what
/// the curve paid: once, and again as it pays them off.
std::uint64_t demand_meter::most_units(unit_kind unit, std::uint64_t paid) const {
  std::uint64_t const ahead = core::units_in(bounded_q40(unit, most_), burst_ns) +
                              most_of_one[static_cast<unsigned>(unit) % core::unit_count];
  return paid + ahead - std::min(ahead, ahead_units_);
}

/// Waits between two looks show only in the histogram: they were short, and how many is not known.
std::uint32_t demand_meter::blocked_ppm() const {
  std::int64_t const looked_ns = std::max<std::int64_t>(looked_ns_, 1);
  std::int64_t const waited_ns =
      std::clamp(std::max(blocked_ns_, short_wait_ns), std::int64_t{1}, looked_ns);
  auto const ppm = portion(1'000'000, static_cast<rate>(waited_ns), static_cast<rate>(looked_ns));
  return std::max(static_cast<std::uint32_t>(ppm), 1u);
}

figures demand_meter::take(unit_kind unit, std::uint64_t waits, std::int64_t now_ns) {
  std::int64_t const span_ns = now_ns - begin_ns_;
  figures f;
  std::int64_t const taken = core::distance(last_.served_units, begin_units_);
  std::uint64_t const paid = core::units_in(bounded_q40(unit, most_), span_ns);
  std::uint64_t const most = most_units(unit, paid);
  if (taken > 0) f.served_units = std::min(static_cast<std::uint64_t>(taken), most);
  ahead_units_ += f.served_units;
  ahead_units_ -= std::min(ahead_units_, paid);
  f.served = rate_over(milli_of_units(unit, f.served_units), span_ns);
  f.waiting = milli_of_units(unit, last_.waiting_units);
  f.waiters = last_.waiters;
  was_blocked_ = has_blocked_ || waits != begin_waits_;
  f.blocked_ppm = was_blocked_ ? blocked_ppm() : 0;
  // More was given back than taken: that was counted, and is counted once.
  bool const is_given_back = taken < 0 && static_cast<std::uint64_t>(-taken) <= most;
  if (!is_given_back) begin_units_ = last_.served_units;
  begin_waits_ = waits;
  begin_ns_ = now_ns;
  last_ns_ = now_ns;
  most_ = paying_;
  looked_ns_ = blocked_ns_ = 0;
  has_blocked_ = false;
  return f;
}

}  // namespace sluice::node
