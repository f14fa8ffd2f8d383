// SPDX-License-Identifier: Apache-2.0
#include "policies/steer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace sluice::policies {

namespace {

constexpr double least_samples = 4;                // that a decision needs …
constexpr std::int64_t patience_ns = 500'000'000;  // … unless this has passed
constexpr std::int64_t settle_ns = 200'000'000;    // calls that end sooner met the old capacity
constexpr double kept_of_late = 0.8;               // a step: half a second in all
constexpr double sure = 3, likely = 1.5;           // standard deviations
constexpr double least_cut = 0.03;
constexpr struct {
  double by_excess, most;
} cuts[] = {{0.2, 0.08}, {0.3, 0.2}, {0.5, 0.4}, {0.6, 0.5}};  // one, and those that follow it
constexpr double near = 0.9, doubted = 0.7;    // a ceiling was tried; was refuted below it
constexpr double easing = 0.95, worse = 1.15;  // mean times, from step to step
constexpr double in_use = 0.75;                // a capacity that is used this far may rise
constexpr double first_rise = 0.01, most_rise = 0.25, rise_growth = 1.5;
constexpr double clearly_fast = 0.5;  // of the slow calls that may be: steps grow

constexpr char const* names[] = {"quiet",   "unused", "rising", "holding",
                                 "falling", "lowest", "highest"};

rate rounded(double r) { return r >= 1.8e19 ? unbounded : r <= 0 ? 0 : static_cast<rate>(r); }

}  // namespace

char const* name_of(steer_sign s) { return names[static_cast<unsigned>(s)]; }

void steer::evidence::add(evidence const& more, double kept) {
  samples = samples * kept + more.samples;
  calls = calls * kept + more.calls;
  slow = slow * kept + more.slow;
  took_ns = took_ns * kept + more.took_ns;
}

void steer::use(steering const& terms) {
  terms_ = terms;
  terms_.least = std::min(terms_.least, terms_.most);
  floor_ = terms_.least;
  keep_bounds();
}

void steer::keep_bounds() { capacity_ = std::clamp(capacity_, floor_, terms_.most); }

std::uint32_t steer::slow_ppm() const {
  return static_cast<std::uint32_t>(std::min(told_, 1.0) * 1e6);
}

double steer::served() const { return span_ns_ > 0 ? served_sum_ / span_ns_ : 0; }

void steer::look(steer_look const& l, std::int64_t now_ns) {
  floor_ = std::clamp(l.reserved, terms_.least, terms_.most);
  if (!has_begun_ || now_ns < looked_ns_) {
    if (!has_begun_) capacity_ = l.served;
    has_begun_ = true;
    looked_ns_ = decided_ns_ = settled_ns_ = now_ns;
  }
  keep_bounds();
  auto const span_ns = static_cast<double>(now_ns - looked_ns_);
  looked_ns_ = now_ns;
  if (now_ns < settled_ns_) return;
  auto const calls = static_cast<double>(l.seen.calls);
  fresh_.add(
      {static_cast<double>(l.seen.samples), calls,
       std::min(static_cast<double>(l.seen.slow), calls), static_cast<double>(l.seen.took_ns)},
      1);
  served_sum_ += static_cast<double>(l.served) * span_ns;
  span_ns_ += span_ns;
  is_wanted_ = is_wanted_ || l.is_wanted;
  // Looks that come every step are never quite a step apart.
  if (now_ns - decided_ns_ < step_ns * 3 / 4) return;
  if (fresh_.samples < least_samples && now_ns - decided_ns_ < patience_ns) return;
  decide(now_ns);
  decided_ns_ = now_ns;
  fresh_ = {};
  served_sum_ = span_ns_ = 0;
  is_wanted_ = false;
}

/// The queue at the server drains since the last cut.
bool steer::is_easing() const { return cuts_ > 0 && fresh_.mean_ns() < easing * before_ns_; }

bool steer::is_growing_worse() const {
  return before_ns_ > 0 && fresh_.slow > 0 && fresh_.mean_ns() > worse * before_ns_;
}

void steer::decide(std::int64_t now_ns) {
  late_.add(fresh_, kept_of_late);
  told_ = late_.slow_part();
  bool const is_sure = is_too_slow(fresh_, sure);
  if (fresh_.samples == 0) {
    sign_ = steer_sign::quiet;
  } else if (is_sure && is_easing()) {
    sign_ = steer_sign::falling;
    late_ = {};
  } else if (is_sure) {
    cut(fresh_.slow_part(), now_ns);
  } else if (is_too_slow(late_, likely)) {
    cut(late_.slow_part(), now_ns);
  } else if (cuts_ = 0; told_ > terms_.slow_ppm / 1e6 || is_growing_worse()) {
    sign_ = steer_sign::holding;
  } else if (!is_wanted_ || served() < in_use * static_cast<double>(capacity_)) {
    sign_ = steer_sign::unused;
  } else {
    rise();
  }
  if (fresh_.calls > 0) before_ns_ = fresh_.mean_ns();
}

/// More calls are slow than chance explains.
bool steer::is_too_slow(evidence const& e, double deviations) const {
  double const may_be = terms_.slow_ppm / 1e6;
  double const slow = e.samples * e.slow_part();
  double const spread = std::sqrt(e.samples * may_be * (1 - may_be));
  return e.samples >= least_samples && slow > e.samples * may_be + deviations * spread;
}

/// Below what was served, for the queue at the server has to go. The more calls are slow, and the
/// oftener that was not enough, the deeper: one alone may be chance.
void steer::cut(double slow_part, std::int64_t now_ns) {
  double const may_be = terms_.slow_ppm / 1e6;
  double const from = terms_.is_shadow ? served() : static_cast<double>(capacity_);
  double const excess = (slow_part - may_be) / (1 - may_be);
  auto const& bounds = cuts[std::min(cuts_++, std::size(cuts) - 1)];
  // Whom nobody follows does not get to know whether that was enough.
  double const by_excess = terms_.is_shadow ? cuts[0].by_excess : bounds.by_excess;
  double const wanted = std::min(served(), from) * (1 - by_excess * excess);
  capacity_ = rounded(std::clamp(wanted, from * (1 - bounds.most), from * (1 - least_cut)));
  sign_ = capacity_ <= floor_ ? steer_sign::lowest : steer_sign::falling;
  keep_bounds();
  note_ceiling(from);
  rise_ = first_rise;
  late_ = {};
  settled_ns_ = now_ns + settle_ns;
}

/// Where it was too slow. What goes on falling is not slow for its own rate: others came, and when
/// they go it may be back where it was.
void steer::note_ceiling(double from) {
  double const here = static_cast<double>(capacity_) * (1 + least_cut);
  if (is_first_fall_ || (has_risen_ && from >= near * ceiling_))
    ceiling_ = here;
  else if (has_risen_)
    ceiling_ = std::max(here, doubted * ceiling_);
  has_risen_ = false;
}

void steer::rise() {
  auto const now = static_cast<double>(capacity_);
  double const below = ceiling_ > 0 ? 1 - now / ceiling_ : 0;
  double part = rise_;
  if (below > first_rise)
    part = std::clamp(below * (0.25 + below / 2), first_rise, most_rise);
  else if (late_.slow_part() < clearly_fast * terms_.slow_ppm / 1e6)
    rise_ = std::min(rise_ * rise_growth, most_rise);
  is_first_fall_ = false;
  has_risen_ = true;
  capacity_ = rounded(now * (1 + part) + 1);
  sign_ = capacity_ >= terms_.most ? steer_sign::highest : steer_sign::rising;
  keep_bounds();
}

}  // namespace sluice::policies
