// SPDX-License-Identifier: Apache-2.0
#include "node/steering.h"

#include <algorithm>
#include <utility>

#include "node/enforcer.h"
#include "verbs/views/steered.h"

namespace sluice::node {

void steering::use() {
  auto const& supplies = site_.supplies();
  parts_.resize(supplies.size());
  for (auto const& r : site_.renewed()) parts_[r.supply] = {};
  is_any_ = false;
  for (unsigned i = 0; i < supplies.size(); ++i) {
    policy::supply const& of = supplies[i].of;
    part& p = parts_[i];
    p.is_steered = of.capacity != 0 && of.steered.has_value();
    p.is_measured = of.capacity != 0 && of.measured.has_value();
    is_any_ = is_any_ || p.is_steered || p.is_measured;
    p.drift.use(p.is_measured ? policies::measured_supply{of.measured->floor, of.measured->most,
                                                          double(of.measured->threads)}
                              : policies::measured_supply{});
    if (p.is_steered)
      p.by.use({of.lowest, of.capacity, of.steered->slow_ppm, of.steered->is_shadow});
    else
      p.by = {};
  }
  for (auto const& j : jobs_.all()) j->speeds = {};
}

policies::steer_look steering::figures(unsigned supply) const {
  policies::steer_look l;
  l.seen = parts_[supply].seen;
  for (auto const& j : jobs_.all())
    for (auto const& s : j->streams) {
      if (s.supply != supply) continue;
      policies::claim const claim = claim_of(*j, s, site_.site(), site_.supplies()[supply],
                                             overrides_.find(j->key), has_parent_)
                                        .policy;
      l.served += claim.served;
      l.reserved += claim.blocked ? claim.reservation : std::min(claim.reservation, claim.served);
      l.is_wanted = l.is_wanted || claim.blocked;
    }
  return l;
}

void steering::look(std::int64_t now_ns) {
  if (!is_any_) return;
  std::vector<policy::supply const*> supplies;
  std::vector<unsigned> number;
  for (unsigned i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].is_steered && !parts_[i].is_measured) continue;
    supplies.push_back(&site_.supplies()[i].of);
    number.push_back(i);
  }
  std::vector<policies::call_speeds> speeds(supplies.size());
  time_.each(jobs_.all(), [&](job& j) {
    if (!j.is_broken()) look_at_speeds(j.memory(), site_.site(), supplies, j.speeds, speeds);
  });
  for (std::size_t k = 0; k < number.size(); ++k) {
    part& p = parts_[number[k]];
    p.seen.add(speeds[k]);
    if (has_parent_) continue;
    policies::steer_look const l = figures(number[k]);
    if (p.is_steered) p.by.look(l, now_ns);
    if (p.is_measured) p.drift.look(l.served, l.seen.took_ns, now_ns);
    p.seen = {};
  }
}

rate steering::in_force(unsigned supply) const {
  rate const written = site_.supplies()[supply].of.capacity;
  if (supply >= parts_.size() || !parts_[supply].is_steered || has_parent_) return written;
  policies::steer const& by = parts_[supply].by;
  return by.terms().is_shadow ? written : by.capacity();
}

std::vector<rate> steering::in_force() const {
  std::vector<rate> out;
  for (unsigned i = 0; i < site_.supplies().size(); ++i) out.push_back(in_force(i));
  return out;
}

policies::call_speeds steering::take(unsigned supply) {
  if (supply >= parts_.size()) return {};
  return std::exchange(parts_[supply].seen, {});
}

std::optional<verbs::steered_view> steering::view(unsigned supply) const {
  if (supply >= parts_.size() || !parts_[supply].is_steered || has_parent_) return std::nullopt;
  policy::supply const& of = site_.supplies()[supply].of;
  policies::steer const& by = parts_[supply].by;
  return verbs::steered_by(*of.steered, of.lowest, of.capacity, by.capacity(),
                           policies::name_of(by.sign()), by.slow_ppm());
}

std::optional<verbs::drift_view> steering::drift(unsigned supply) const {
  if (supply >= parts_.size() || !parts_[supply].is_measured || has_parent_) return std::nullopt;
  policies::drift const& d = parts_[supply].drift;
  return verbs::drift_view{policies::name_of(d.sign()), d.given(), d.costs().floor, d.costs().most};
}

}  // namespace sluice::node
