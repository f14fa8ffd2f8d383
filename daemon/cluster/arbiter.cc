// SPDX-License-Identifier: Apache-2.0
#include "cluster/arbiter.h"

#include <algorithm>
#include <utility>

namespace sluice::cluster {

namespace {

constexpr time_ns policy_again_ns = 1'000'000'000;
constexpr std::uint32_t policy_part_bytes = 60'000;
constexpr time_ns pool_grace_ns = 3'000'000'000;  // children that change over need less

lease::parent::settings ledger_settings(arbiter::settings const& s, policy_table const& p) {
  lease::parent::settings out;
  out.time = s.time;
  out.owner = p.owner;
  out.relay = s.who == wire::role::relay;
  return out;
}

}  // namespace

arbiter::arbiter(settings const& s, policy_table p, std::uint64_t incarnation, time_ns start)
    : set_(s),
      incarnation_(incarnation),
      roster_(policy_table{}),
      parent_(ledger_settings(s, p), incarnation, start),
      had_pool_at_(start),
      allocated_at_(start - s.spacing_ns),
      next_cycle_(start),
      start_(start) {
  roster_.forgot_until = forgot_until();
  set_policy(std::move(p), start);
}

/// Rows of supplies that the policy no longer names, and on which nothing is counted any more.
std::vector<std::uint32_t> arbiter::unused(time_ns now) const {
  std::vector<bool> const used = roster_.used();
  std::vector<std::uint32_t> out;
  for (std::uint32_t s = 0; s < roster_.width(); ++s)
    if (policy().supplies[s].capacity == 0 && !used[s] && parent_.is_unused(s, now))
      out.push_back(s);
  return out;
}

std::size_t arbiter::rows_with(policy_table p, time_ns now) const {
  align(p, policy(), unused(now));
  return p.supplies.size();
}

void arbiter::set_policy(policy_table p, time_ns now) {
  renewed_ = align(p, policy(), unused(now));
  for (std::uint32_t s : renewed_) {
    parent_.renew(s);
    steers_[s] = {};
    drifts_[s] = {};
    speeds_[s] = {};
    overbooked_[s] = false;
    if (s < allotment_.supplies.size()) allotment_.supplies[s] = {};
  }
  std::vector<lease::supply_terms> supply_terms;
  keys_.clear();
  for (supply_row const& s : p.supplies) {
    supply_terms.push_back(s.lease);
    if (set_.who == wire::role::relay) supply_terms.back().pool = 0;
    keys_.push_back(s.key);
  }
  parent_.set_terms(supply_terms);
  if (!algorithm_ || p.algorithm != roster_.policy().algorithm) {
    policies::algorithm const* found = policies::find_algorithm(p.algorithm);
    algorithm_ = (found ? found : policies::find_algorithm("maxmin"))->make();
  }
  roster_.set_policy(std::move(p), renewed_);
  capacity_.assign(roster_.width(), 0);
  wanted_.assign(roster_.width(), 0);
  overbooked_.resize(roster_.width(), false);
  steers_.resize(roster_.width());
  drifts_.resize(roster_.width());
  speeds_.resize(roster_.width());
  for (std::uint32_t s = 0; s < roster_.width(); ++s) {
    supply_row const& row = policy().supplies[s];
    if (row.steered)
      steers_[s].use({row.lowest, row.capacity, row.steered->slow_ppm, row.steered->is_shadow});
    else
      steers_[s] = {};
    if (row.measured)
      drifts_[s].use({row.measured->floor, row.measured->most, double(row.measured->threads)});
    else
      drifts_[s] = {};
  }
  urgent_ = true;
}

void arbiter::set_overrides(verbs::override_book const* o) {
  roster_.set_overrides(o);
  urgent_ = true;
}

void arbiter::set_timers(lease::timers const& t) {
  set_.time = t;
  parent_.set_timers(t);
  roster_.forgot_until = forgot_until();
}

/// Up to Q grants are renewed without a split, and the old one goes on with them.
time_ns arbiter::forgot_until() const {
  return start_ + set_.time.quiet_ns() + set_.time.ledger_ns();
}

std::vector<notice> arbiter::take_notices() { return std::exchange(notices_, {}); }

// ---------------------------------------------------------------------------- messages

void arbiter::hello(std::uint32_t number, wire::hello const& m, caller const& from, time_ns now,
                    outbox& out) {
  child& c = roster_.meet(number, incarnation_);
  parent_.hello(number, from.incarnation, now);
  if (from.incarnation < c.incarnation) c.incarnation = 0;  // its clock went back
  if (!c.known) notices_.push_back({notice::child_came, from.name});
  c.known = true;
  c.name = from.name;
  c.is_relay = m.who == wire::role::relay;
  c.policy_hash = m.policy_hash;
  send_welcome(number, out);
  send_policy(number, now, out);
}

void arbiter::send_welcome(std::uint32_t number, outbox& out) {
  wire::welcome w;
  w.who = set_.who;
  w.level = set_.time.level;
  w.cycle_ns = set_.time.cycle_ns;
  w.lease_ns = set_.time.lease_ns;
  w.policy_hash = policy().hash;
  w.name = set_.name;
  w.lacks_pool = roster_.children[number].knows_lacking = lacks_pool_;
  out.send(number, w);
}

void arbiter::send_policy(std::uint32_t number, time_ns now, outbox& out) {
  child& c = roster_.children[number];
  policy_table const& p = policy();
  if (p.text.empty() || c.policy_hash == p.hash) return;
  if (c.policy_sent_at != 0 && now - c.policy_sent_at < policy_again_ns) return;
  c.policy_sent_at = now;
  auto const total = static_cast<std::uint32_t>(p.text.size());
  for (std::uint32_t at = 0; at < total; at += policy_part_bytes) {
    wire::policy_part part;
    part.hash = p.hash;
    part.total_bytes = total;
    part.offset = at;
    part.text = p.text.substr(at, policy_part_bytes);
    if (!out.send(number, part)) return;
  }
}

/// The lease part of a report in the order of our supplies.
lease::report const& arbiter::as_ours(child const& c, lease::report const& r) {
  bool same = c.supply.size() == roster_.width() && r.supply.size() == c.supply.size();
  for (std::uint32_t i = 0; same && i < c.supply.size(); ++i)
    same = c.supply[i] == i && (c.is_relay || lends_its_own(c, r.supply[i], i));
  if (same) return r;
  mapped_.child_incarnation = r.child_incarnation;
  mapped_.t_child = r.t_child;
  mapped_.heard = r.heard;
  mapped_.lend = r.lend;
  mapped_.supply.assign(roster_.width(), {});
  for (std::size_t i = 0; i < std::min(c.supply.size(), r.supply.size()); ++i)
    if (c.supply[i] != no_supply) mapped_.supply[c.supply[i]] = r.supply[i];
  for (std::uint32_t s = 0; s < roster_.width() && !c.is_relay; ++s) {
    if (lends_its_own(c, mapped_.supply[s], s)) continue;
    own_part const own = own_part_of(c, s);
    mapped_.supply[s].lent = own.escrow;
    mapped_.supply[s].members = own.members;
  }
  return mapped_;
}

/// A node owns one part of a supply, whatever it claims, and none when the policy does not name it.
arbiter::own_part arbiter::own_part_of(child const& c, std::uint32_t supply) const {
  lease::supply_terms const& terms = policy().supplies[supply].lease;
  if (terms.configured == 0 || !policy().has_node(c.name)) return {};
  return {terms.most_lent / terms.configured, 1};
}

bool arbiter::lends_its_own(child const& c, lease::holding const& h, std::uint32_t supply) const {
  own_part const own = own_part_of(c, supply);
  return h.lent <= own.escrow && h.members <= own.members;
}

void arbiter::report(std::uint32_t number, wire::report const& m, time_ns now) {
  child& c = roster_.meet(number, incarnation_);
  news const n = roster_.take(number, m, now);
  if (n.is_old) return;
  take_speeds(c, m);
  if (!m.same_streams) count_nodes(number);
  lease::parent::heard const heard = parent_.on_report(number, as_ours(c, m.lease), now);
  urgent_ |= n.edge;
  freed_ |= n.freed || heard.freed;
  if (!std::exchange(c.unanswered, true)) unanswered_.push_back(number);
}

/// Nodes that the policy does not name are counted by their streams. One with many jobs counts as
/// many, so a relay may seem larger than it is: that is the side on which its nodes lose nothing.
void arbiter::count_nodes(std::uint32_t number) {
  child const& c = roster_.children[number];
  if (!c.is_relay) return;
  for (std::uint32_t s = 0; s < roster_.width(); ++s)
    if (policy().supplies[s].lease.configured == 0)
      parent_.set_nodes(number, s, roster_.nodes_below(c, s));
}

/// More than a machine can do says nothing.
void arbiter::take_speeds(child const& c, wire::report const& m) {
  constexpr std::uint64_t most_calls = 100'000'000'000, most_ns = 1'000'000'000'000'000'000;
  for (wire::speed_entry const& e : m.speeds) {
    std::uint32_t const s = e.supply < c.supply.size() ? c.supply[e.supply] : no_supply;
    bool const is_sane = e.is.calls <= most_calls && e.is.samples <= e.is.calls &&
                         e.is.slow <= e.is.calls && e.is.took_ns <= most_ns;
    if (s == no_supply || !is_sane || speeds_[s].calls > most_calls) continue;
    speeds_[s].add(e.is);
  }
}

policies::call_speeds arbiter::take_speeds(std::uint32_t supply) {
  return std::exchange(speeds_[supply], {});
}

policies::steer const* arbiter::steered(std::uint32_t supply) const {
  bool const steers = set_.who == wire::role::cluster && policy().supplies[supply].steered;
  return steers ? &steers_[supply] : nullptr;
}

policies::drift const* arbiter::drifted(std::uint32_t supply) const {
  bool const looks = set_.who == wire::role::cluster && policy().supplies[supply].measured;
  return looks ? &drifts_[supply] : nullptr;
}

rate arbiter::in_force(std::uint32_t supply) const {
  policies::steer const* const by = steered(supply);
  bool const is_written = by == nullptr || by->terms().is_shadow;
  return is_written ? policy().supplies[supply].capacity : by->capacity();
}

/// The figures of the last allocation belong to the calls that were reported since.
void arbiter::steer_supplies(time_ns now) {
  for (std::uint32_t s = 0; s < roster_.width(); ++s) {
    bool const steers = steered(s) != nullptr, looks = drifted(s) != nullptr;
    if ((!steers && !looks) || s >= allotment_.supplies.size()) continue;
    supply_state const& last = allotment_.supplies[s];
    policies::call_speeds const seen = take_speeds(s);
    if (steers) steers_[s].look({seen, last.served, last.reserved, last.blocked_jobs != 0}, now);
    if (looks) drifts_[s].look(last.served, seen.took_ns, now);
  }
}

void arbiter::jobs(std::uint32_t number, wire::job_list const& m, time_ns now) {
  roster_.meet(number, incarnation_);
  roster_.take(number, m, now);
}

void arbiter::bye(std::uint32_t number, time_ns now) {
  child& c = roster_.meet(number, incarnation_);
  if (!c.known) return;
  // What it holds stays in the ledger until its leases end; the jobs are gone from our table.
  parent_.forget(number, now);
  roster_.clear(c);
  note_life(c, false, now);
  c.known = false;
  urgent_ = true;
}

// ---------------------------------------------------------------------------- relay

void arbiter::obey(bool amounts, std::uint32_t members, std::uint32_t configured) {
  part_ = amounts ? limit_part{} : limit_part{std::min(members, configured), configured};
  if (amounts == obeys_) return;
  obeys_ = amounts;
  urgent_ = true;
}

void arbiter::set_amounts(wire::grant const& g, bool opens_window) {
  for (flow& f : roster_.flows) f.amount = 0, f.limit_above.reset();
  for (wire::stream_grant const& s : g.streams) {
    if (s.supply >= g.supplies.size()) continue;
    std::uint32_t const row = roster_.job_of(s.job);
    std::uint32_t const supply = policy().supply_of(g.supplies[s.supply]);
    if (row == roster::nobody || supply == no_supply) continue;
    roster_.at(row, supply).amount = s.value;
    roster_.at(row, supply).limit_above = s.limit;
  }
  for (flow& f : roster_.flows) f.most = opens_window ? f.amount : std::max(f.most, f.amount);
  urgent_ = true;
  allocated_at_ -= set_.spacing_ns;  // nothing to wait for: the parent has decided
}

void arbiter::open_window() {
  for (flow& f : roster_.flows) f.most = f.amount;
}

void arbiter::announced() {
  for (job& j : roster_.jobs) j.is_announced |= !j.name.empty();
  roster_.has_new_jobs = false;
}

bool arbiter::amounts_settled(time_ns now) const {
  if (parent_.is_quiet(now)) return false;
  return std::all_of(roster_.flows.begin(), roster_.flows.end(),
                     [](flow const& f) { return f.held <= f.most && f.unknown == 0; });
}

// ---------------------------------------------------------------------------- time

time_ns arbiter::due() const {
  return urgent_ ? std::min(next_cycle_, allocated_at_ + set_.spacing_ns) : next_cycle_;
}

bool arbiter::settle(time_ns now, outbox& out) {
  bool const allocates = now >= due();
  if (allocates) {
    allocate(now);
    push(now, out);
  }
  answer_all(now, out);
  if (freed_ || allocates) hand_on(now, out);
  freed_ = false;
  return allocates;
}

void arbiter::note_life(child& c, bool live, time_ns now) {
  if (c.live == live) return;
  c.live = live;
  if (live) roster_.welcome_back(c, now);
  if (c.known) notices_.push_back({live ? notice::child_back : notice::child_silent, c.name});
}

void arbiter::allocate(time_ns now) {
  bool const cycle_over = now >= next_cycle_;
  if (cycle_over) {
    ++cycle_;
    next_cycle_ += set_.time.cycle_ns;
    if (next_cycle_ <= now) next_cycle_ = now + set_.time.cycle_ns;
    if (parent_.has_pool(now)) had_pool_at_ = now;
    lacks_pool_ = now - had_pool_at_ > pool_grace_ns;
    steer_supplies(now);
  }
  for (std::uint32_t s = 0; s < roster_.width(); ++s) {
    capacity_[s] = parent_.budget(s, now);
    rate const floors = policy().supplies[s].floors;
    if (steered(s) != nullptr)
      capacity_[s] = std::min(capacity_[s], in_force(s) - std::min(in_force(s), floors));
  }
  for (std::uint32_t i = 0; i < roster_.children.size(); ++i) {
    child& c = roster_.children[i];
    note_life(c, parent_.is_live(i, now), now);
    if (cycle_over) freed_ |= roster_.expire(c, now, set_.time.cycle_ns);
    if (c.live) continue;
    // Whoever is silent takes no part; what it may still use is not ours to give.
    for (std::uint32_t s = 0; s < roster_.width(); ++s)
      capacity_[s] -= std::min(capacity_[s], parent_.ledger(i, s, now));
    if (c.given_until != 0 && now >= c.given_until) {
      roster_.silence(c);
      c.given_until = 0;
    }
  }
  if (cycle_over) roster_.trim();
  allotment_.run(roster_, capacity_, obeys_ ? nullptr : algorithm_.get(), part_, now);
  for (std::uint32_t s = 0; s < roster_.width(); ++s) {
    supply_state const& state = allotment_.supplies[s];
    if (state.overbooked == overbooked_[s] || obeys_ || parent_.is_quiet(now)) continue;
    overbooked_[s] = state.overbooked;
    notices_.push_back({state.overbooked ? notice::overbooked : notice::fits_again,
                        policy().supplies[s].name, state.reserved, state.bookable});
  }
  urgent_ = false;
  allocated_at_ = now;
}

/// True when children have more of a supply than may be given by now.
bool arbiter::must_shrink(time_ns now) const {
  for (std::uint32_t s = 0; s < roster_.width(); ++s) {
    rate sum = 0;
    for (std::uint32_t i = 0; i < roster_.children.size(); ++i) sum += parent_.current(i, s, now);
    if (sum > parent_.budget(s, now)) return true;
  }
  return false;
}

/// Answers again, before their next report, the children whose targets moved away from what they
/// have. Those that lose come first of all: the others wait for their acknowledgement. When all
/// together must lose, they are planned before the first is answered.
void arbiter::push(time_ns now, outbox& out) {
  exact_ = !parent_.is_quiet(now) && must_shrink(now);
  asking_.clear();
  for (std::uint32_t i = 0; i < roster_.children.size(); ++i) {
    child const& c = roster_.children[i];
    if (!c.known) continue;
    send_policy(i, now, out);
    if (c.knows_lacking != lacks_pool_) send_welcome(i, out);
    if (c.live && (exact_ || (!c.unanswered && is_off_target(i, now)))) asking_.push_back(i);
  }
  if (exact_)
    for (std::uint32_t i : asking_) parent_.plan(i, roster_.children[i].wanted, now);
  for (std::uint32_t i : asking_) {
    roster_.children[i].unanswered = false;
    answer(i, now, out);
  }
  exact_ = false;
}

void arbiter::answer_all(time_ns now, outbox& out) {
  for (std::uint32_t i : unanswered_) {
    if (!std::exchange(roster_.children[i].unanswered, false)) continue;
    answer(i, now, out);
  }
  unanswered_.clear();
}

/// What was freed goes at once to those who have less than they should.
void arbiter::hand_on(time_ns now, outbox& out) {
  asking_.clear();
  asking_.swap(hungry_);
  for (std::uint32_t i : asking_) {
    child& c = roster_.children[i];
    c.hungry = false;
    if (!c.live) continue;
    if (is_off_target(i, now))
      answer(i, now, out);
    else
      mark_hungry(i, now);
  }
}

}  // namespace sluice::cluster
