// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/schedule.h"

#include <algorithm>
#include <cmath>

namespace sluice::replay {

curve::curve(std::vector<double> const& amounts, double step_s, double unit, span s)
    : step_s_(step_s), end_s_(std::min(s.end_s, step_s * static_cast<double>(amounts.size()))) {
  sum_.reserve(amounts.size() + 1);
  for (double amount : amounts) sum_.push_back(sum_.back() + amount / unit);
  if (sum_.size() > 1) first_ = -sum_[1] / step_s * s.warm_up_s;
}

double curve::at(double time_s) const {
  if (sum_.size() < 2) return 0;
  if (time_s < 0) return std::max(first_, sum_[1] / step_s_ * time_s);
  double const place = std::min(time_s, end_s_) / step_s_;
  auto const i = static_cast<std::size_t>(place);
  if (i + 1 >= sum_.size()) return sum_.back();
  return sum_[i] + (sum_[i + 1] - sum_[i]) * (place - static_cast<double>(i));
}

double curve::time_of(double level, std::size_t& cursor) const {
  if (level < 0) return level * step_s_ / sum_[1];
  while (cursor + 1 < sum_.size() && sum_[cursor + 1] <= level) ++cursor;
  if (cursor + 1 >= sum_.size()) return never_s;
  double const rise = sum_[cursor + 1] - sum_[cursor];
  double const at_s = step_s_ * (static_cast<double>(cursor) + (level - sum_[cursor]) / rise);
  return at_s < end_s_ ? at_s : never_s;
}

std::uint64_t next_random(std::uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1dull;
}

std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15ull + (index + 1) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return z != 0 ? z : 1;
}

double phase_of(unsigned stream) {
  double const golden = 0.61803398874989484;
  double const x = 0.5 + golden * stream;
  return x - std::floor(x);
}

schedule::schedule(curve const& c, part p, schedule_settings const& s)
    : curve_(&c), kind_(s.kind), stride_(p.of), random_(mix_seed(s.seed, p.index)) {
  if (kind_ == arrivals::even) {
    // The first operation of the curve that is ours; numbers are negative in the warm-up.
    auto const k = static_cast<std::int64_t>(std::ceil(c.first() - s.phase));
    std::int64_t const n = p.of;
    std::int64_t const skipped = ((p.index - k) % n + n) % n;
    level_ = static_cast<double>(k + skipped) + s.phase;
  } else {
    level_ = c.first();
    level_ += step();
  }
  next_s_ = curve_->time_of(level_, cursor_);
}

double schedule::step() {
  if (kind_ == arrivals::even) return stride_;
  double const u = static_cast<double>(next_random(random_) >> 11) * 0x1p-53;
  return -std::log1p(-u) * stride_;
}

void schedule::advance() {
  level_ += step();
  next_s_ = curve_->time_of(level_, cursor_);
}

std::uint64_t count_even(curve const& c, double phase, double from_s, double to_s) {
  auto until = [&](double t) { return std::ceil(c.at(t) - phase); };
  double const n = until(to_s) - until(from_s);
  return n > 0 ? static_cast<std::uint64_t>(n) : 0;
}

}  // namespace sluice::replay
