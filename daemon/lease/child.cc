// SPDX-License-Identifier: Apache-2.0
// Three parents may differ for a while: the one reported to, the one obeyed, and the one lent to.
// Reports may go anywhere. A grant is obeyed from the one lent to, or from anybody while nothing is
// lent. A lend goes to the one obeyed, when it answers, and never to a second one before the first
// lend has ended.
#include "lease/child.h"

#include <algorithm>
#include <utility>

namespace sluice::lease {

child::child(timers const& t, std::uint64_t incarnation, rules const& obeys)
    : time_(t), incarnation_(incarnation), obeys_(obeys) {}

bool child::is_unused(unsigned supply, time_ns now) const {
  return held(supply, now) == 0 && !owes_acknowledgement(supply);
}

void child::renew(unsigned supply) {
  if (supply < parts_.size()) parts_[supply] = {};
}

// What a former life lent, it lent for the M of its parent.
void child::set_timers(timers const& t) {
  time_ = t;
  if (started_ != 0) lend_until_ = std::max(lend_until_, started_ + t.lend_ns());
}

void child::set_own(std::span<own const> supplies) {
  if (supplies.size() > parts_.size()) parts_.resize(supplies.size());
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    parts_[s].mine = s < supplies.size() ? supplies[s] : own{0, 0, 0};
  }
}

void child::booted(time_ns now) {
  lent_to_ = 0;
  lend_until_ = obeys_.waits_after_boot ? now + time_.start_ns() : now;
  if (obeys_.waits_after_boot) started_ = now;
}

// Reports may have left after the memory was written, so the lend counts from now; unless nothing
// was lent but by a machine that has booted since, and it knows until when. A lease is never longer
// than what the memory says: a renewal only prolongs it.
void child::remember(child_memory const& m, time_ns now) {
  lent_to_ = m.parent;
  obeyed_ = m.obeyed;
  least_incarnation_ = m.parent_incarnation;
  lend_until_ = m.lend_until;
  if (m.parent != 0) {
    lend_until_ = std::max(lend_until_, now + time_.start_ns());
    started_ = now;
  }
  if (m.supply.size() > parts_.size()) parts_.resize(m.supply.size());
  for (std::size_t s = 0; s < m.supply.size() && obeyed_ != 0; ++s) {
    part& p = parts_[s];
    p.applied = m.supply[s].applied;  // acknowledged by the next report, a relay's after Q
    p.value = m.supply[s].value;
    p.until = std::min(m.supply[s].until, now + time_.lease_ns);
  }
}

void child::displaced(time_ns until) {
  lent_to_ = 0;
  lend_until_ = std::max(lend_until_, until);
}

child_memory child::memory() const {
  child_memory m;
  m.parent = lent_to_;
  m.obeyed = obeyed_;
  m.parent_incarnation = obeyed_ == contact_.name ? contact_.incarnation : least_incarnation_;
  m.lend_until = lend_until_;
  for (part const& p : parts_) m.supply.push_back({p.applied, p.value, p.until});
  return m;
}

// ---- whom to obey and whom to lend to ----

bool child::is_orphan(time_ns now) const { return lend_until_ <= now; }

bool child::is_silent(time_ns now) const {
  if (contact_.name == 0) return false;
  return now - (contact_.heard ? contact_.heard_at : contact_.since) > time_.silent_ns;
}

bool child::is_accepted(time_ns now) const {
  return contact_.accepted && now - contact_.accepted_at <= time_.silent_ns;
}

bool child::may_obey(std::uint64_t parent, time_ns now) const {
  return lent_to_ == parent || lent_to_ == 0 || is_orphan(now) || !obeys_.lends_to_one;
}

// A parent that gives no values counts on no lend of ours: a round trip beyond A makes each report
// too old to be believed. A restarted one has values at the second report, so S is patience enough.
bool child::is_bare(time_ns now) const {
  return contact_.bare && now - contact_.bare_since > time_.silent_ns;
}

// A parent that is only found again must have answered first: else visits to a dead one would
// prolong its lend for ever.
bool child::may_lend(time_ns now) const {
  if (!contact_.heard || is_silent(now) || is_bare(now)) return false;
  if (is_orphan(now) || !obeys_.lends_to_one) return is_accepted(now);
  return lent_to_ == contact_.name;
}

// The versions of two parents say nothing about each other. What the former one gave stays usable
// while its lease runs: it stands in the ledger of that parent.
void child::obey(std::uint64_t parent) {
  for (part& p : parts_) {
    if (p.value > p.before.value || p.until > p.before.until) p.before = {p.value, p.until};
    p = part{.mine = p.mine, .applied = {}, .acknowledged = {}, .before = p.before};
  }
  obeyed_ = parent;
  least_incarnation_ = 0;
}

// ---- reports ----

report child::make_report(std::uint64_t parent, time_ns now) {
  if (contact_.name != parent) {
    contact_ = contact{};
    contact_.name = parent;
    contact_.since = now;
  }
  report r;
  r.child_incarnation = incarnation_;
  r.t_child = newest_sent_ = now;
  r.heard = {contact_.incarnation, contact_.t_parent};
  r.lend = may_lend(now);
  for (part& p : parts_) {
    if (p.before.until <= now) p.before = {};
    holding h;
    if (!p.hold) p.acknowledged = p.applied;
    if (obeyed_ == parent) {
      h.applied = p.acknowledged;
      if (p.until > now) h.held = p.value;
    }
    if (r.lend) {
      h.lent = p.mine.escrow;
      h.members = p.mine.members;
    }
    r.supply.push_back(h);
  }
  if (!r.lend) return r;
  lent_to_ = parent;
  lend_until_ = std::max(lend_until_, now + time_.lend_ns());
  return r;
}

// ---- grants ----

bool child::apply(part& p, given const& g, time_ns t_child, time_ns now) {
  if (g.ver.incarnation == 0) return false;  // nothing said
  if (g.ver < p.applied && obeys_.keeps_order) return false;
  rate const had = p.until > now ? p.value : 0;
  time_ns const from = obeys_.lease_from_report ? t_child : now;
  time_ns const end = from + g.lease_ns;
  if (now >= end) return false;
  bool const renewed = g.ver == p.applied;
  p.until = renewed ? std::max(p.until, end) : end;
  p.value = g.value;
  p.applied = g.ver;
  return !renewed || p.value != had;
}

std::uint64_t child::known_life(std::uint64_t parent) const {
  std::uint64_t life = contact_.incarnation;
  if (parent != obeyed_) return life;
  life = std::max(life, least_incarnation_);
  for (part const& p : parts_) life = std::max(life, p.applied.incarnation);
  return life;
}

// A smaller incarnation is a late message, or a life that began by a clock that had gone back. It
// is the latter when it answers a report sent after the newest message of the known life was heard,
// or after that life was only remembered. Then all is as after any restart of the parent, but its
// versions count anew.
void child::follow_back(std::uint64_t parent, time_ns now) {
  contact_.incarnation = 0;
  contact_.t_parent = 0;
  contact_.since = now;  // what answers an earlier report may be of the life that has ended
  if (parent != obeyed_) return;
  least_incarnation_ = 0;
  for (part& p : parts_) p.applied = p.acknowledged = {};
}

bool child::on_grant(std::uint64_t parent, grant const& g, time_ns now) {
  if (g.child_incarnation != incarnation_ || parent != contact_.name) return false;
  contact& c = contact_;
  // Not a report of ours, or one of an earlier visit: its versions are no longer known.
  if (g.t_child > newest_sent_ || g.t_child < c.since) return false;
  if (g.parent_incarnation < c.incarnation && g.t_child <= c.met_at) return false;
  if (g.parent_incarnation < known_life(parent)) follow_back(parent, now);
  c.met_at = now;
  bool const first = g.parent_incarnation > c.incarnation;
  if (first || g.t_parent > c.t_parent) c.t_parent = g.t_parent;
  c.incarnation = g.parent_incarnation;
  if (now - g.t_child >= time_.lease_ns && obeys_.lease_from_report) return first;
  c.heard = true;
  c.heard_at = now;
  bool changed = first;
  if (g.supply.empty()) {
    if (!std::exchange(c.bare, true)) c.bare_since = now;
  } else {
    c.bare = false;
    changed |= !is_accepted(now);
    c.accepted = true;
    c.accepted_at = now;
    if (may_obey(parent, now)) {
      if (obeyed_ != parent) obey(parent);
      std::size_t const n = std::min(parts_.size(), g.supply.size());
      for (std::size_t s = 0; s < n; ++s) changed |= apply(parts_[s], g.supply[s], g.t_child, now);
    }
  }
  return changed;
}

// ---- what may be used ----

rate child::granted(unsigned supply, time_ns now) const {
  if (supply >= parts_.size() || parts_[supply].until <= now) return 0;
  return parts_[supply].value;
}

rate child::held(unsigned supply, time_ns now) const {
  if (supply >= parts_.size()) return 0;
  former const& f = parts_[supply].before;
  return std::max(granted(supply, now), f.until > now ? f.value : 0);
}

time_ns child::held_until(unsigned supply, time_ns now) const {
  if (supply >= parts_.size()) return 0;
  part const& p = parts_[supply];
  bool const former = p.before.until > now && p.before.value > granted(supply, now);
  return former ? p.before.until : p.until;
}

rate child::usable(unsigned supply, time_ns now) const {
  if (supply >= parts_.size()) return 0;
  own const& mine = parts_[supply].mine;
  rate const escrow = is_orphan(now) || !obeys_.escrow_stays_lent ? mine.escrow : 0;
  return mine.floor + std::max(held(supply, now), escrow);
}

time_ns child::lent_until() const { return lend_until_; }

// ---- what the owner of the child decides ----

void child::hold_acknowledgement(unsigned supply, bool hold) {
  if (supply < parts_.size()) parts_[supply].hold = hold;
}

bool child::owes_acknowledgement(unsigned supply) const {
  return supply < parts_.size() && parts_[supply].applied != parts_[supply].acknowledged;
}

}  // namespace sluice::lease
