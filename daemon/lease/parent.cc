// SPDX-License-Identifier: Apache-2.0
// Sums over all children are kept as they change, so that a report or an answer costs the same
// with ten thousand children as with one. What only time changes (leases and lends that end) is
// looked at every eighth of a cycle: until then an ended grant still counts, and a lend counts
// only if it lasts until the next look.
#include "lease/parent.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace sluice::lease {
namespace {

constexpr std::size_t ring_older = 15;     // 16 with the newest
constexpr rate most_rate = rate{1} << 53;  // of one child, so that no sum wraps
constexpr int slow_leases = 10;            // L', how long a child that gave up late is slow
constexpr rate over(rate a, rate b) { return a > b ? a - b : 0; }

}  // namespace

parent::parent(settings const& s, std::uint64_t incarnation, time_ns start)
    : set_(s), incarnation_(incarnation), start_(start) {}

void parent::set_timers(timers const& t) {
  set_.time = t;
  fresh_ = false;
}

void parent::set_terms(std::span<supply_terms const> terms) {
  if (terms.size() > totals_.size()) totals_.resize(terms.size());
  for (std::size_t s = 0; s < totals_.size(); ++s) {
    totals_[s].terms = s < terms.size() ? terms[s] : supply_terms{};
  }
  for (edge& e : edges_) e.supply.resize(totals_.size());
}

bool parent::is_unused(unsigned supply, time_ns now) const {
  if (supply >= totals_.size()) return true;
  total const& t = totals_[supply];
  if (is_quiet(now) || (t.own != 0 && t.own_until > now)) return false;
  return std::all_of(edges_.begin(), edges_.end(), [&](edge const& e) {
    slot const& x = e.supply[supply];
    return led_of(x, now) == 0 && left_of(x, now) == 0 && (x.lent == 0 || x.lend_end <= now);
  });
}

void parent::renew(unsigned supply) {
  if (supply >= totals_.size()) return;
  totals_[supply] = total{};
  for (edge& e : edges_) e.supply[supply] = slot{};
  fresh_ = false;
}

void parent::set_own(unsigned supply, rate value, time_ns until) {
  if (supply >= totals_.size()) return;
  if (totals_[supply].own != value) totals_[supply].part.reset();
  totals_[supply].own = value;
  totals_[supply].own_until = until;
}

void parent::set_orphan(bool orphan) { orphan_ = orphan; }

bool parent::is_quiet(time_ns now) const {
  return set_.obeys.waits_quiet && now < start_ + set_.time.quiet_ns();
}

// ---- the sums ----

parent::slot const* parent::find(unsigned child, unsigned supply) const {
  if (child >= edges_.size() || supply >= edges_[child].supply.size()) return nullptr;
  return &edges_[child].supply[supply];
}

rate parent::led_of(slot const& x, time_ns now) {
  rate most = cur_of(x, now);
  for (entry const& e : x.older) {
    if (e.end > now) most = std::max(most, e.value);
  }
  return most;
}

rate parent::cur_of(slot const& x, time_ns now) { return x.newest.end > now ? x.newest.value : 0; }
rate parent::left_of(slot const& x, time_ns now) { return x.left_end > now ? x.left : 0; }

// What was given from an own grant stands in the ledger above as well.
rate parent::kept_of(slot const& x, time_ns now) {
  rate most = x.newest.kept ? cur_of(x, now) : 0;
  for (entry const& o : x.older) {
    if (o.kept && o.end > now) most = std::max(most, o.value);
  }
  return most;
}

// What is given is out of reach for L' if the child does not give it up. One that did not, lately,
// is raised only to what it should have had all that time, or its fair part if that is more: a
// moment in which others want little would cost them much more than that moment. Less than its part
// would stop work that comes in bursts, for one stall of an honest child. A relay is late when one
// node below it stalls, so its part is that of all its nodes.
rate parent::meant_of(slot const& x, total const& t, rate wanted, time_ns now) const {
  rate const gone = left_of(x, now);
  if (now >= x.slow_until) return over(wanted, gone);
  std::uint64_t const shares = std::max(x.shares, 1u);
  rate const part = budget_of(t, t.lent, t.members, now) / std::max(t.sharers, shares) * shares;
  return over(std::min(wanted, std::max({x.steady, part, cur_of(x, now) + gone})), gone);
}

// A relay gives up only after its children, so this is not a matter of one round trip.
bool parent::is_late(slot const& x, time_ns now) const {
  return std::any_of(x.older.begin(), x.older.end(), [&](entry const& o) {
    return o.value > x.newest.value && now - o.over_at > set_.time.ledger_ns() / 2;
  });
}

// `steady` falls at once, and rises to what was wanted for L' in answers with no long gap.
void parent::watch(slot& x, rate wanted, time_ns now) const {
  bool const first = x.asked_at == 0, gap = now - x.asked_at > set_.time.believe_ns;
  x.asked_at = now;
  if (wanted > 0) x.shares_until = now + slow_leases * set_.time.ledger_ns();
  if (first || wanted <= x.steady) {
    x.steady = wanted;
    x.rising = 0;
  } else if (x.rising == 0 || gap) {
    x.rising = wanted;
    x.rises_at = now;
  } else {
    x.rising = std::min(x.rising, wanted);
    if (now - x.rises_at < set_.time.ledger_ns()) return;
    x.steady = std::exchange(x.rising, 0);
  }
}

// The sums are kept up to date slot by slot: adding all of them at each report would cost n².
void parent::count(slot& x, total& t, time_ns now) {
  assert(t.led >= x.led && t.cur >= x.cur);
  t.led -= x.led;
  t.cur -= x.cur;
  t.gone -= x.gone;
  t.lent -= x.lending;
  t.members -= x.lenders;
  t.sharers -= x.shares;
  bool const lends = x.lend_end >= horizon_;
  x.led = led_of(x, now);
  x.cur = cur_of(x, now);
  x.gone = left_of(x, now);
  x.lending = lends ? x.lent : 0;
  x.lenders = lends ? x.members : 0;
  x.shares = now < x.shares_until ? std::max({x.members, x.nodes, 1u}) : 0;
  t.led += x.led;
  t.cur += x.cur;
  t.gone += x.gone;
  t.lent += x.lending;
  t.members += x.lenders;
  t.sharers += x.shares;
}

std::int64_t parent::look_ns() const { return set_.time.cycle_ns / 8; }

bool parent::is_fresh(time_ns now) const {
  return fresh_ && now >= refreshed_ && now < refreshed_ + look_ns();
}

void parent::refresh(time_ns now) {
  if (is_fresh(now)) return;
  fresh_ = true;
  refreshed_ = now;
  horizon_ = now + look_ns() + set_.time.ledger_ns();
  for (total& t : totals_) t.part.reset();
  for (edge& e : edges_) {
    for (std::size_t s = 0; s < e.supply.size(); ++s) count(e.supply[s], totals_[s], now);
  }
}

rate parent::budget_of(total const& t, rate lent, std::uint32_t members, time_ns now) const {
  if (!set_.obeys.counts_lends) {
    lent = t.terms.most_lent;
    members = t.terms.configured;
  }
  if (set_.relay) {
    if (orphan_) return lent;
    return t.own_until > now ? t.own : 0;
  }
  bool const most = 2 * std::uint64_t{members} > t.terms.configured;
  bool const pool = set_.owner == pool_owner::single ||
                    (set_.owner == pool_owner::majority && (most || !set_.obeys.needs_majority));
  return std::min(lent, t.terms.most_lent) + (pool ? t.terms.pool : 0);
}

rate parent::budget(unsigned supply, time_ns now) const {
  if (supply >= totals_.size()) return 0;
  std::uint32_t members = 0;
  rate const lent = lent_to_us(supply, now, members);
  return budget_of(totals_[supply], lent, members, now);
}

rate parent::lent_to_us(unsigned supply, time_ns now, std::uint32_t& members) const {
  total const& t = totals_[supply];
  members = t.members;
  if (is_fresh(now)) return t.lent;
  rate lent = 0;
  members = 0;
  for (edge const& e : edges_) {
    slot const& x = e.supply[supply];
    if (x.lend_end < now + set_.time.ledger_ns()) continue;
    lent += x.lent;
    members += x.members;
  }
  return lent;
}

bool parent::has_pool(time_ns now) const {
  if (set_.relay || set_.owner != pool_owner::majority) return true;
  for (unsigned s = 0; s < totals_.size(); ++s) {
    supply_terms const& terms = totals_[s].terms;
    std::uint32_t members = 0;
    if (terms.pool > 0) lent_to_us(s, now, members);
    if (terms.pool > 0 && 2 * std::uint64_t{members} <= terms.configured) return false;
  }
  return true;
}

bool parent::is_ruling(time_ns now) const {
  if (set_.relay || set_.owner != pool_owner::majority) return true;
  auto const has_one = [](total const& t) { return t.terms.pool > 0; };
  return std::any_of(totals_.begin(), totals_.end(), has_one) && has_pool(now);
}

rate parent::ledger_sum(unsigned supply, time_ns now) const {
  if (supply >= totals_.size()) return 0;
  total const& t = totals_[supply];
  if (is_fresh(now)) return t.led + t.gone;
  rate sum = 0;
  for (edge const& e : edges_)
    sum += led_of(e.supply[supply], now) + left_of(e.supply[supply], now);
  return sum;
}

rate parent::ledger(unsigned child, unsigned supply, time_ns now) const {
  slot const* x = find(child, supply);
  return x ? led_of(*x, now) : 0;
}

rate parent::current(unsigned child, unsigned supply, time_ns now) const {
  slot const* x = find(child, supply);
  return x ? cur_of(*x, now) : 0;
}

rate parent::left_by(unsigned child, unsigned supply, time_ns now) const {
  slot const* x = find(child, supply);
  return x ? left_of(*x, now) : 0;
}

rate parent::meant(unsigned child, unsigned supply, rate wanted, time_ns now) const {
  slot const* x = find(child, supply);
  return x ? meant_of(*x, totals_[supply], wanted, now) : wanted;
}

rate parent::lent_by(unsigned child, unsigned supply, time_ns now) const {
  slot const* x = find(child, supply);
  return x && x->lend_end > now ? x->lent : 0;
}

bool parent::is_live(unsigned child, time_ns now) const {
  if (child >= edges_.size() || !edges_[child].ever_believed) return false;
  return now - edges_[child].believed_at < set_.time.live_ns();
}

rate parent::lent_below(unsigned supply, time_ns now, std::uint32_t& members) const {
  members = 0;
  if (supply >= totals_.size()) return 0;
  unsigned const level = set_.time.level;
  time_ns const until =
      set_.obeys.lends_nest ? now + set_.time.lend_ns(level ? level - 1 : 0) : now;
  rate lent = 0, kept = 0;
  for (edge const& e : edges_) {
    slot const& x = e.supply[supply];
    if (x.lend_end >= until) {
      lent += x.lent;
      members += x.members;
    }
    kept += kept_of(x, now) + (x.left_end > now ? x.left_kept : 0);
  }
  if (!set_.obeys.lends_unused) return lent;
  // What a former incarnation gave out while orphaned is not known before it has ended.
  return is_quiet(now) ? 0 : over(lent, kept);
}

// ---- reports ----

void parent::meet(unsigned child) {
  while (edges_.size() <= child) {
    edges_.emplace_back();
    edges_.back().supply.resize(totals_.size());
  }
}

void parent::set_nodes(unsigned child, unsigned supply, std::uint32_t nodes) {
  meet(child);
  if (supply < totals_.size()) edges_[child].supply[supply].nodes = nodes;
}

parent::heard parent::on_report(unsigned child, report const& r, time_ns now) {
  meet(child);
  edge& e = edges_[child];
  heard h;
  if (e.known && r.child_incarnation < e.incarnation) return h;
  bool const anew = !e.known || r.child_incarnation > e.incarnation;
  if (!anew && r.t_child < e.t_child) return h;  // overtaken by a newer one
  h.restarted = e.known && anew;
  e.known = true;
  e.incarnation = r.child_incarnation;
  e.t_child = r.t_child;
  e.received = now;
  e.answered = false;
  e.lends = r.lend;
  bool const recent = r.heard.t_parent <= now && now - r.heard.t_parent <= set_.time.believe_ns;
  h.believed = r.heard.incarnation == incarnation_ && recent;
  if (!set_.obeys.believes_own_echo) h.believed = true;
  e.believed = h.believed;
  if (!h.believed) return h;
  e.believed_at = now;
  e.ever_believed = true;
  refresh(now);
  time_ns const from = set_.obeys.lend_from_echo ? r.heard.t_parent : now;
  for (std::size_t s = 0; s < totals_.size(); ++s) {
    slot& x = e.supply[s];
    holding const holds = s < r.supply.size() ? r.supply[s] : holding{};
    rate const led = led_of(x, now);
    rate const lending = x.lending;
    if (is_late(x, now)) x.slow_until = now + slow_leases * set_.time.ledger_ns();
    acknowledge(x, holds);
    learn(x, totals_[s], holds, now);
    if (r.lend) borrow(x, totals_[s], holds, from);
    count(x, totals_[s], now);
    h.freed |= x.led < led || x.lending > lending;
  }
  return h;
}

// Entries below the version in force are given up. An expired lease never counts as a decrease: it
// may be renewed in flight.
void parent::acknowledge(slot& x, holding const& h) {
  version const v = h.applied;
  if (v.incarnation != incarnation_ || v > x.newest.ver) return;
  std::erase_if(x.older, [v](entry const& o) { return o.ver < v; });
}

// After a restart what children hold is what they were given before. All together never held more
// than there is. Who comes when others have claimed that has his part of it for certain. A child is
// learnt of once: its next lives hold nothing that the first one did not.
void parent::learn(slot& x, total& t, holding const& h, time_ns now) {
  if (now >= start_ + set_.time.quiet_ns() || h.held == 0) return;
  if (x.newest.ver.incarnation != 0 || std::exchange(x.learnt, true)) return;
  rate const most = set_.relay ? most_rate : t.terms.pool + t.terms.most_lent;
  rate const held = set_.relay && t.own_until > now ? t.own : most;
  t.doubted |= h.held > over(held, t.led + t.gone);
  rate const part = most / ++t.claimers;
  append(x, std::min(h.held, std::max(over(most, t.led), part)), now + set_.time.ledger_ns(), now);
}

// The report was certainly sent after what it echoes; on the child's clock it lends for M.
void parent::borrow(slot& x, total const& t, holding const& h, time_ns from) {
  time_ns const end = from + set_.time.minus_drift(set_.time.lend_ns());
  rate const lent = std::min(h.lent, set_.relay ? most_rate : t.terms.most_lent);
  // More than before is lent only from this report on; what was lent before stays for longer.
  x.lend_end = lent > x.lent || h.members > x.members ? end : std::max(x.lend_end, end);
  x.lent = lent;
  x.members = std::min(h.members, t.terms.configured);
}

// ---- answers ----

// A grant ends in time: a relay's with its own lease.
std::int64_t parent::lease_for(total const& t, time_ns now) const {
  timers const& time = set_.time;
  if (!set_.relay || orphan_ || !set_.obeys.leases_nest) return time.lease_ns;
  std::int64_t const rest = time.minus_drift(t.own_until - now) - time.grain_ns;
  return std::clamp<std::int64_t>(rest, 0, time.lease_ns);
}

void parent::append(slot& x, rate value, time_ns end, time_ns now) {
  if (x.newest.ver.incarnation != 0 && set_.obeys.acknowledged_first) {
    x.newest.over_at = now;
    x.older.push_back(x.newest);
    if (x.older.size() > ring_older) {  // the two oldest become one that covers both
      entry& second = x.older[1];
      second.value = std::max(second.value, x.older[0].value);
      second.end = std::max(second.end, x.older[0].end);
      second.kept |= x.older[0].kept;
      second.over_at = x.older[0].over_at;
      x.older.erase(x.older.begin());
    }
  }
  x.newest = {{incarnation_, ++counter_}, value, end, set_.relay && orphan_};
}

// What a liar was given in Q, and left behind with a bye, runs for a lease after that.
bool parent::cuts_claims(total const& t, time_ns now) const {
  return is_quiet(now) || (t.doubted && now < start_ + 2 * set_.time.quiet_ns());
}

// What each may keep when all together claim to hold more than there is: somebody lies, and we do
// not know who. The largest claims are cut alike, and a small one is not cut for them.
rate parent::divide_claims(unsigned supply, rate budget, time_ns now) const {
  std::vector<rate> claims;
  for (edge const& e : edges_) {
    slot const& x = e.supply[supply];
    if (rate const claim = cur_of(x, now) + left_of(x, now); claim != 0) claims.push_back(claim);
  }
  std::ranges::sort(claims);
  std::size_t left = claims.size();
  for (rate const claim : claims) {
    if (claim > budget / left) return budget / left;
    budget -= claim;
    --left;
  }
  return most_rate;
}

// Divided once per refresh: for each answer that would cost n² log n. Who claims meanwhile is cut
// by the next.
rate parent::part_of_claims(unsigned supply, rate budget, time_ns now) {
  std::optional<rate>& part = totals_[supply].part;
  if (!part) {
    part = divide_claims(supply, budget, now);
    ++divisions_;
  }
  return *part;
}

// What former lives of the child may still use is part of what it is meant to have.
// `v` is judged against the newest value issued, never against an older one that the ledger still
// holds: the child may have given that up already and got a smaller one.
given parent::give(slot& x, unsigned supply, rate wanted, time_ns now) {
  total& t = totals_[supply];
  std::int64_t lease = lease_for(t, now);
  rate const cur = cur_of(x, now);
  rate const base = set_.obeys.judged_by_current ? cur : led_of(x, now);
  rate const budget = budget_of(t, t.lent, t.members, now);
  watch(x, wanted, now);
  rate v = lease > 0 ? meant_of(x, t, wanted, now) : 0;
  if (v > base) {
    bool const full = x.older.size() >= ring_older;
    rate const room = over(budget, t.led - x.led + t.gone);
    v = is_quiet(now) || full ? cur : std::max(cur, std::min(v, room));
  }
  t.cut -= std::exchange(x.cut, 0);
  rate room = over(budget, over(t.cur - x.cur + t.gone, t.cut));
  if (v > room && cuts_claims(t, now))
    room = std::max(room, over(part_of_claims(supply, budget, now), x.gone));
  v = std::min(v, room);
  // Just restarted: those whose lends carry this renewal may not have reported yet.
  if (v < cur && is_quiet(now) && now < start_ + set_.time.silent_ns) return {};
  if (v == 0) lease = set_.time.lease_ns;
  time_ns const margin =
      set_.obeys.drift_margin ? set_.time.plus_drift(lease) + set_.time.grain_ns : lease;
  bool const running = x.newest.end > now || v == 0;
  bool const moved = x.newest.kept && !orphan_;  // onto the relay's own grant: a new version
  if (x.newest.ver.incarnation != 0 && x.newest.value == v && running && !moved) {
    x.newest.end = std::max(x.newest.end, now + margin);
  } else {
    append(x, v, now + margin, now);
  }
  count(x, t, now);
  return {x.newest.ver, v, lease};
}

bool parent::holds_nothing(edge const& e, time_ns now) const {
  for (slot const& x : e.supply) {
    if (led_of(x, now) != 0 || x.lend_end > now) return false;
  }
  return true;
}

// What is not answered is not renewed either: it ends with what it was given from.
bool parent::plan(unsigned child, std::span<rate const> wanted, time_ns now) {
  if (child >= edges_.size() || !edges_[child].believed) return false;
  edge& e = edges_[child];
  if (is_quiet(now) || now - e.received > set_.time.believe_ns) return false;
  refresh(now);
  for (std::size_t s = 0; s < e.supply.size() && s < wanted.size(); ++s) {
    slot& x = e.supply[s];
    totals_[s].cut -= x.cut;
    x.cut = over(x.cur, over(wanted[s], x.gone));
    totals_[s].cut += x.cut;
  }
  return true;
}

std::optional<grant> parent::answer(unsigned child, std::span<rate const> wanted, time_ns now) {
  if (child >= edges_.size() || !edges_[child].known) return std::nullopt;
  edge& e = edges_[child];
  bool const stale = now - e.received > set_.time.believe_ns;
  grant g;
  g.parent_incarnation = incarnation_;
  g.t_parent = now;
  g.child_incarnation = e.incarnation;
  g.t_child = e.t_child;
  // An orphan's escrow is of more use to itself than to a parent that may not raise anything yet.
  bool const welcome = !e.believed || (is_quiet(now) && !e.lends && holds_nothing(e, now));
  if (stale || welcome) {
    if (e.answered) return std::nullopt;
    e.answered = true;
    return g;
  }
  e.answered = true;
  refresh(now);
  for (std::size_t s = 0; s < e.supply.size(); ++s) {
    rate const want = s < wanted.size() ? wanted[s] : 0;
    g.supply.push_back(give(e.supply[s], static_cast<unsigned>(s), want, now));
  }
  return g;
}

// What the former life holds stays in the ledger; it says nothing any more that could shorten that.
void parent::hello(unsigned child, std::uint64_t incarnation, time_ns now) {
  if (child >= edges_.size() || !edges_[child].known) return;
  if (incarnation < edges_[child].incarnation) forget(child, now);
}

void parent::forget(unsigned child, time_ns now) {
  if (child >= edges_.size()) return;
  edge& e = edges_[child];
  for (std::size_t s = 0; s < e.supply.size(); ++s) {
    slot& x = e.supply[s];
    if (rate const led = led_of(x, now); led > 0) {
      x.left_kept = (x.left_end > now ? x.left_kept : 0) + kept_of(x, now);
      x.left = left_of(x, now) + led;
      x.slow_until = now + slow_leases * set_.time.ledger_ns();
      x.left_end = std::max(x.left_end, x.newest.end);
      for (entry const& o : x.older) x.left_end = std::max(x.left_end, o.end);
    }
    x.newest = {};
    x.older.clear();
    x.lent = x.members = 0;
    x.lend_end = 0;
    totals_[s].cut -= std::exchange(x.cut, 0);
    count(x, totals_[s], now);
  }
  e = edge{.supply = std::move(e.supply)};
}

}  // namespace sluice::lease
