// SPDX-License-Identifier: Apache-2.0
// Source of the bound: counts of independent requests vary by the root of their number (Poisson),
// so that a larger spread is a change of demand and not noise. Changes are answered by `served`
// itself.
#include "policies/fluctuation.h"

#include <algorithm>
#include <cmath>

namespace sluice::policies {
namespace {

constexpr double memory_part = 1.0 / 8;
constexpr double deviations = 4;
constexpr double most_poisson = 2;  // deviations are counted up to twice those of random requests
constexpr unsigned idle_cycles = 2;
constexpr double milli = 1000;

double square(double x) { return x * x; }

}  // namespace

void fluctuation::learn(memory& m, claim const& c) {
  m.idle = c.served == 0 ? m.idle + 1 : 0;
  if (m.idle >= idle_cycles) {
    m = {m.job, 0, 0, 0, idle_cycles};
    return;
  }
  double const served = static_cast<double>(c.served);
  double const step = served - static_cast<double>(m.last);
  m.mean += memory_part * (served - m.mean);
  m.variance += memory_part * (square(step) / 2 - m.variance);
  m.last = c.served;
}

rate fluctuation::need(memory const& m, claim const& c, double cycle_s) {
  double const tokens = m.mean / milli * cycle_s;
  double const random = std::sqrt(tokens) * milli / cycle_s;
  double const spread = std::min(std::sqrt(m.variance), most_poisson * random);
  double const need = m.mean + deviations * spread;
  return need >= static_cast<double>(c.reservation) ? c.reservation : static_cast<rate>(need);
}

void fluctuation::observe(std::span<claim const> claims, std::int64_t now_ns) {
  double const cycle_s = std::clamp(static_cast<double>(now_ns - before_ns_) / 1e9, 1e-3, 10.0);
  before_ns_ = now_ns;
  next_.clear();
  steady_.assign(claims.size(), 0);
  auto at = known_.begin();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    claim const& c = claims[i];
    if (c.reservation == 0) continue;
    while (at != known_.end() && at->job < c.job) ++at;
    bool const is_known = at != known_.end() && at->job == c.job;
    memory m = is_known ? *at : memory{c.job, c.served, static_cast<double>(c.served), 0, 0};
    learn(m, c);
    if (m.idle < idle_cycles) steady_[i] = need(m, c, cycle_s);
    next_.push_back(m);
  }
  known_.swap(next_);
}

}  // namespace sluice::policies
