// SPDX-License-Identifier: Apache-2.0
#include "node/enforcer.h"

#include <algorithm>
#include <cmath>

#include "policy/compile.h"
#include "policy/supply.h"
#include "wire/message.h"

namespace sluice::node {

std::string const& class_in_force(job const& j, verbs::job_overrides const* overrides) {
  return overrides != nullptr && overrides->qos ? overrides->qos->qos_class : j.record.qos_class;
}

share_claim claim_of(job const& j, stream const& s, policy::site const& site,
                     supply_slot const& slot, verbs::job_overrides const* overrides,
                     bool has_parent) {
  share_claim c;
  policies::claim& p = c.policy;
  p.job = j.key;
  if (auto const share = policy::share_of(site, class_in_force(j, overrides), slot.of)) {
    p.weight =
        static_cast<std::uint32_t>(std::lround(std::clamp(share->weight, 0.001, 1e6) * 1000));
    if (share->reservation) p.reservation = policy::milli_per_second(*share->reservation);
    if (share->requests)
      p.reservation =
          s.need ? *s.need : policy::milli_per_second(policy::first_of(*share->requests));
    if (share->limit) p.limit = policy::milli_per_second(*share->limit);
    p.priority = share->priority;
    c.is_capped = share->limit.has_value();
  }
  c.told_limit = s.limit;
  if (c.told_limit) c.is_capped = c.is_bound();
  p.declared = p.reservation;
  if (overrides != nullptr) {
    c.is_paused = overrides->pause.has_value();
    if (auto const* const l = overrides->limit_of(slot.of.name())) {
      // An operator of a node that is its own controller may also raise.
      bool const replaces = !l->by_owner && !has_parent;
      p.limit = replaces ? l->value : std::min(p.limit, l->value);
      if (c.told_limit) c.told_limit = std::min(*c.told_limit, l->value);
    }
  }
  p.reservation = std::min(p.reservation, p.limit);
  p.served = s.last.served;
  p.waiting = s.last.waiting;
  p.waiters = s.last.waiters;
  p.blocked = s.last.blocked_ppm != 0 || s.measured.is_blocked();
  c.granted = s.granted;
  return c;
}

void enforcer::use(site_state const& site) {
  auto const* const found = policies::find_algorithm(site.site().algorithm);
  algorithm_ = found == nullptr ? nullptr : found->make();
  as_if_asked_ = found == nullptr ? nullptr : found->make();
  for (auto const& r : site.renewed())
    if (r.supply < kept_.size()) kept_[r.supply] = 0;
}

void enforcer::collect(site_state const& site, job_table const& jobs,
                       verbs::override_book const& overrides) {
  tables_.assign(site.supplies().size(), {});
  kept_.resize(site.supplies().size());
  for (auto const& j : jobs.all()) {
    if (j->is_broken()) continue;
    verbs::job_overrides const* const changed = overrides.find(j->key);
    for (auto& s : j->streams) {
      table& t = tables_[s.supply];
      t.entries.push_back({j.get(), &s});
      t.claims.push_back(
          claim_of(*j, s, site.site(), site.supplies()[s.supply], changed, has_parent_));
    }
  }
}

void enforcer::set_times(table& t, unsigned supply, lease::child const& child, moment now,
                         policy::orphan_mode mode) const {
  std::int64_t const lent_until = child.lent_until();
  if (child.is_orphan(now.boot_ns)) {  // everything is ours, and nobody but us can change that
    t.alone = true;
    return;
  }
  bool const holds = child.held(supply, now.boot_ns) > 0;
  // With nothing held the floor is all until the escrow comes home.
  t.times.lease_end_ns = now.mono_of(holds ? child.held_until(supply, now.boot_ns) : lent_until);
  t.times.own_at_ns = now.mono_of(lent_until);
  t.times.open = mode == policy::orphan_mode::open;
}

void enforcer::set_terms(site_state const& site, lease::child const& child,
                         std::span<rate const> in_force, moment now) {
  policy::orphan_mode const mode = site.site().control.orphans;
  for (unsigned i = 0; i < tables_.size(); ++i) {
    supply_slot const& slot = site.supplies()[i];
    table& t = tables_[i];
    t.terms = {0, slot.floor, slot.escrow, slot.trickle, slot.of.least};
    t.wanted.resize(t.claims.size());
    if (!slot.is_shared()) continue;
    if (!has_parent_) {
      t.alone = true;
      t.usable = in_force[i];
      continue;
    }
    t.terms.granted = child.held(i, now.boot_ns);
    if (child.held_until(i, now.boot_ns) > now.boot_ns) kept_[i] = t.terms.granted;
    bool const keeps = mode == policy::orphan_mode::keep && kept_[i] != 0;
    if (keeps) t.terms.granted = kept_[i];
    if (!keeps) set_times(t, i, child, now, mode);
    t.usable = t.alone ? child.usable(i, now.boot_ns) + slot.trickle
                       : t.terms.granted + slot.floor + (t.terms.granted == 0 ? slot.trickle : 0);
  }
}

/// Divides what the node decides on alone.
void enforcer::share_lone(policies::allocator* by, std::int64_t now_ns) {
  std::vector<policies::supply> supplies;
  for (auto const& t : tables_) {
    bool const asks = t.alone && !t.claims.empty();
    supplies.push_back(asks ? lone_supply(t.terms, t.usable, t.claims) : policies::supply{});
  }
  std::vector<std::vector<rate>> allocated;
  if (by != nullptr) by->allocate(supplies, now_ns, allocated);
  allocated.resize(tables_.size());
  for (unsigned i = 0; i < tables_.size(); ++i)
    if (table& t = tables_[i]; t.alone)
      share_alone(t.terms, t.usable, t.claims, allocated[i], t.wanted);
}

/// What a watched job may use is what it would get if it asked: its calls do not wait until the
/// node has seen that it wants more. The others keep what it does not use.
void enforcer::share_watched(std::int64_t now_ns) {
  bool is_any = false;
  for (auto& t : tables_)
    for (std::size_t k = 0; k < t.entries.size(); ++k)
      if (t.alone && t.entries[k].who->record.monitor) is_any = t.claims[k].policy.blocked = true;
  if (!is_any) return;
  std::vector<std::vector<phases>> as_it_is;
  for (auto const& t : tables_) as_it_is.push_back(t.wanted);
  share_lone(as_if_asked_.get(), now_ns);
  for (unsigned i = 0; i < tables_.size(); ++i)
    for (std::size_t k = 0; k < tables_[i].entries.size(); ++k)
      if (!tables_[i].entries[k].who->record.monitor) tables_[i].wanted[k] = as_it_is[i][k];
}

void enforcer::share(std::int64_t now_ns) {
  share_lone(algorithm_.get(), now_ns);
  for (table& t : tables_) {
    if (t.alone) continue;
    std::vector<phases> before;
    for (auto const& s : t.entries) before.push_back({s.what->share, 0, 0});
    share_grant(t.terms, is_split_, t.claims, before, t.wanted);
  }
  share_watched(now_ns);
}

/// What its streams are to have, and notes what they have.
std::vector<curve_change> enforcer::changes_of(unsigned supply, site_state const& site) {
  auto const& control = site.site().control;
  table& t = tables_[supply];
  bool const is_shared = site.supplies()[supply].is_shared();
  bool const is_open = has_parent_ && t.alone && control.orphans == policy::orphan_mode::open;
  std::vector<curve_change> changes;
  for (std::size_t k = 0; k < t.entries.size(); ++k) {
    stream& s = *t.entries[k].what;
    rate const fair = t.wanted[k].now;
    bool const is_watched = t.entries[k].who->record.monitor;
    if (!is_watched) standing_[supply].granted += fair;
    s.share = fair;
    s.is_held = control.enforce && !is_watched;
    bool const is_free = (!is_shared || !control.enforce || is_open) && !t.claims[k].is_paused;
    rate const all = unlimited(s.unit);
    phases const wanted = is_free ? phases{all, all, all} : t.wanted[k];
    changes.push_back({t.entries[k].who->map.writer(), s.channel, s.unit, &s.in_force, wanted,
                       t.claims[k].is_paused});
  }
  standing_[supply].usable = t.usable;
  standing_[supply].is_orphan = has_parent_ && t.alone;
  return changes;
}

void enforcer::write(site_state const& site, job_table const& jobs, std::int64_t now_ns) {
  standing_.assign(tables_.size(), {});
  std::vector<std::vector<curve_change>> all;
  bool is_falling = false;
  for (unsigned i = 0; i < tables_.size(); ++i) {
    all.push_back(changes_of(i, site));
    is_falling = write_falling(all[i], tables_[i].times, now_ns) || is_falling;
  }
  if (is_falling) jobs.settle();
  for (unsigned i = 0; i < tables_.size(); ++i) write_wanted(all[i], tables_[i].times, now_ns);
}

void enforcer::write_fixed(job& j, verbs::job_overrides const* changed, std::int64_t now_ns) {
  for (auto& f : j.fixed) {
    std::uint64_t wanted = f.of.rate_q40;
    if (changed != nullptr) {
      if (auto const* const l = changed->limit_of(f.of.name)) wanted = q40_of(f.of.unit, l->value);
      if (changed->pause) wanted = 0;
    }
    if (wanted == f.in_force_q40) continue;
    j.map.write_curve(f.channel, policy::settings_of(f.of.unit, wanted), now_ns);
    f.in_force_q40 = wanted;
  }
}

void enforcer::apply(site_state const& site, job_table const& jobs,
                     verbs::override_book const& overrides, lease::child const& child,
                     std::span<rate const> in_force, moment now) {
  collect(site, jobs, overrides);
  set_terms(site, child, in_force, now);
  share(now.mono_ns);
  write(site, jobs, now.mono_ns);
  for (auto const& j : jobs.all())
    if (!j->is_broken()) write_fixed(*j, overrides.find(j->key), now.mono_ns);
}

}  // namespace sluice::node
