// SPDX-License-Identifier: Apache-2.0
#include "cluster/roster.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "wire/codec.h"

namespace sluice::cluster {

namespace {

constexpr time_ns tenancy_ns = 25'000'000'000;  // two and a half repetitions of a job list
constexpr std::uint32_t taken = ~std::uint32_t{0};
// More than any node has: a daemon serves 1024 jobs at most, a report of it has 1000 streams.
constexpr std::size_t most_jobs_of_node = 1024;
constexpr std::size_t most_jobs_of_relay = 200'000;
// Of silent children: no more than some relays may have, and none of them crowds out the others.
constexpr std::size_t most_remembered = 200'000;
constexpr std::size_t most_remembered_of_child = most_remembered / 10;
constexpr std::size_t most_streams_of_node = 1000;
constexpr std::size_t most_streams_of_relay = 20'000;  // more than a message of one has room for

// Sums over all children must fit 64 bits, whatever a child claims.
constexpr rate most_of_node = rate{1} << 48;
constexpr rate most_of_relay = rate{1} << 54;
constexpr std::uint32_t most_processes_of_node = 4096;  // of a job: it has so many process slots
constexpr std::uint32_t most_nodes_of_relay = 1 << 16;
// What a machine of 256 processors can do in a second, milli-tokens, with no call shorter than
// 200 ns. Grants bound nothing here: where a policy is not enforced, and where a job is only
// watched, it is served more than it was granted, by any factor.
constexpr rate most_served_of_node[core::unit_count] = {256 * rate{5'000'000'000}, most_of_node,
                                                        256 * rate{20'000'000'000}};

std::uint32_t nodes_of(child const& c, wire::stream_report const& s) {
  return c.is_relay ? std::clamp(s.nodes, 1u, most_nodes_of_relay) : 1;
}

rate served_of(child const& c, wire::stream_report const& s, core::unit_kind unit) {
  rate const of_node = most_served_of_node[static_cast<unsigned>(unit) % core::unit_count];
  return std::min({s.served, nodes_of(c, s) * of_node, c.is_relay ? most_of_relay : most_of_node});
}

/// Of one job.
std::uint32_t processes_of(child const& c, std::uint32_t said) {
  return std::min(said, most_processes_of_node * (c.is_relay ? most_nodes_of_relay : 1));
}

bool is_blocked(wire::stream_report const& s) {
  return s.blocked_ppm > 0 || s.waiters > 0 || (s.has_bins && s.blocked > 0);
}

/// A relay names a job so that only silent ones of its children had: nothing but the name.
bool is_mere_name(child const& c, wire::job_entry const& e) {
  return c.is_relay && e.processes == 0 && e.escaped == 0 && !e.watched && e.class_key == 0;
}

bool are_same_streams(child const& c, wire::report const& r) {
  if (c.streams.size() != r.streams.size()) return false;
  for (std::size_t i = 0; i < r.streams.size(); ++i) {
    wire::stream_report const& said = r.streams[i];
    if (said.job != c.streams[i].key || said.supply >= c.supply.size() ||
        c.supply[said.supply] != c.streams[i].supply)
      return false;
  }
  return true;
}

}  // namespace

job_worth worth_of(policy_table const& p, std::uint32_t class_key) {
  constexpr rate whole = 1'000'000;
  __extension__ using u128 = unsigned __int128;
  job_worth w;
  class_row const& c = p.classes[p.class_of(class_key)];
  for (std::size_t s = 0; s < std::min(p.supplies.size(), c.by_supply.size()); ++s) {
    rate const capacity = p.supplies[s].capacity;
    if (capacity == 0) continue;
    auto const part = [&](rate r) { return rate(u128{std::min(r, capacity)} * whole / capacity); };
    terms const& t = c.by_supply[s];
    w.limit += part(t.limit);
    w.reservation += part(std::min(t.reservation, t.limit));
    w.weight += t.weight;
  }
  return w;
}

char const* state_of(child const& c, time_ns now) {
  constexpr time_ns gone_after_ns = 10'000'000'000;
  if (c.live) return "live";
  return now - c.heard_at < gone_after_ns ? "silent" : "gone";
}

policies::demand_bins histogram_of(child const& c, stream const& s) {
  return wire::histogram(s.blocked_nodes, s.blocked_weight,
                         std::span(c.bins).subspan(s.bins, s.bin_count));
}

void roster::set_policy(policy_table p, std::span<std::uint32_t const> renewed) {
  for (std::size_t j = 0; j < jobs.size(); ++j)
    for (std::uint32_t s : renewed) flows[j * width_ + s] = {};
  auto const width = static_cast<std::uint32_t>(p.supplies.size());
  std::vector<flow> wider(jobs.size() * width);
  for (std::size_t j = 0; j < jobs.size(); ++j)
    for (std::uint32_t s = 0; s < std::min(width, width_); ++s)
      wider[j * width + s] = flows[j * width_ + s];
  flows = std::move(wider);
  slots_.assign(flows.size(), 0);
  width_ = width;
  policy_ = std::move(p);
  for (child& c : children) {
    c.keys.clear();
    c.supply.clear();
    c.wanted.resize(width, 0);
  }
  relink();
}

std::vector<bool> roster::used() const {
  std::vector<bool> out(width_, false);
  for (child const& c : children) {
    for (stream const& s : c.streams) out[s.supply] = true;
    for (ghost const& g : c.ghosts) out[g.supply] = true;
  }
  return out;
}

void roster::set_overrides(verbs::override_book const* o) {
  overrides_ = o;
  relink();
}

void roster::relink() {
  for (job& j : jobs)
    if (j.key != 0) link(j);
}

std::uint32_t row_in(policy_table const& p, job const& j) {
  bool const is_forced = j.forced != nullptr && j.forced->qos;
  return is_forced ? p.class_named(j.forced->qos->qos_class) : p.class_of(j.class_key);
}

void roster::link(job& j) {
  j.forced = overrides_ ? overrides_->find(j.key) : nullptr;
  j.row = row_in(policy_, j);
}

terms roster::deal(job const& j, std::uint32_t supply) const {
  terms t = policy_.classes[j.row].by_supply[supply];
  if (j.forced == nullptr) return t;
  if (auto const* l = j.forced->limit_of(policy_.supplies[supply].name))
    t.limit = l->by_owner ? std::min(t.limit, l->value) : l->value;
  if (j.forced->pause) t.limit = 0;
  t.reservation = std::min(t.reservation, t.limit);
  return t;
}

child& roster::meet(std::uint32_t c, std::uint64_t first_sequence) {
  if (c >= children.size()) children.resize(c + 1);
  child& met = children[c];
  if (met.sequence == 0) met.sequence = met.mark = first_sequence;
  met.wanted.resize(width_, 0);
  return met;
}

std::uint32_t roster::job_of(core::job_id key) const {
  auto const at = rows_.find(key);
  return at == rows_.end() ? nobody : at->second;
}

presence roster::presence_of(core::job_id key) const {
  std::uint32_t const row = job_of(key);
  if (row == nobody) return presence::gone;
  auto const has = [row](auto const& of) { return of.job == row; };
  presence found = presence::gone;
  for (child const& c : children) {
    if (!c.live && found == presence::awaited) continue;
    if (!std::ranges::any_of(c.jobs, has) && !std::ranges::any_of(c.streams, has)) continue;
    if (c.live) return presence::here;
    found = presence::awaited;
  }
  return found;
}

std::vector<job_total> roster::totals() const {
  std::vector<job_total> out(jobs.size());
  for (child const& c : children)
    for (tenancy const& t : c.jobs) {
      job_total& total = out[t.job];
      total.away += t.is_away;
      if (t.is_away) continue;
      ++total.children;
      total.watched += t.is_watched;
      total.processes += t.processes;
      total.escaped += t.escaped;
    }
  return out;
}

std::uint32_t roster::job_row(core::job_id key) {
  auto const [at, is_new] = rows_.try_emplace(key, 0);
  if (!is_new) return at->second;
  if (free_rows_.empty()) {
    at->second = static_cast<std::uint32_t>(jobs.size());
    jobs.emplace_back();
    flows.resize(flows.size() + width_);
    slots_.resize(flows.size(), 0);
  } else {
    at->second = free_rows_.back();
    free_rows_.pop_back();
  }
  job& j = jobs[at->second];
  j.key = key;
  link(j);
  return at->second;
}

void roster::unuse(std::uint32_t row) {
  job& j = jobs[row];
  if (--j.uses > 0) return;
  rows_.erase(j.key);
  j = job{};
  std::fill_n(flows.begin() + row * width_, width_, flow{});
  free_rows_.push_back(row);
}

/// Used rows move down, in their order.
void roster::pack() {
  std::vector<std::uint32_t> to(jobs.size(), nobody);
  for (auto const& [key, row] : rows_) to[row] = row;
  std::uint32_t used = 0;
  for (std::uint32_t row = 0; row < to.size(); ++row) {
    if (to[row] == nobody) continue;
    to[row] = used++;
    if (to[row] == row) continue;
    jobs[to[row]] = std::move(jobs[row]);
    std::copy_n(flows.begin() + row * width_, width_, flows.begin() + to[row] * width_);
  }
  jobs.resize(used);
  free_rows_.clear();
  for (auto& [key, row] : rows_) row = to[row];
  for (child& c : children) {
    for (stream& s : c.streams) s.job = to[s.job];
    for (tenancy& t : c.jobs) t.job = to[t.job];
    for (ghost& g : c.ghosts) g.job = to[g.job];
  }
}

void roster::trim() {
  if (free_rows_.empty()) return;
  std::sort(free_rows_.begin(), free_rows_.end(), std::greater<>());
  while (!jobs.empty() && jobs.back().key == 0) jobs.pop_back();
  std::erase_if(free_rows_, [this](std::uint32_t row) { return row >= jobs.size(); });
  if (rows_.size() < jobs.size() / 4) pack();
  flows.resize(jobs.size() * width_);
  slots_.resize(flows.size());
  if (jobs.size() >= jobs.capacity() / 4) return;
  jobs.shrink_to_fit();
  flows.shrink_to_fit();
  slots_.shrink_to_fit();
}

void roster::set_class(std::uint32_t row, std::uint32_t class_key) {
  job& j = jobs[row];
  if (j.class_key == class_key) return;
  j.class_key = class_key;
  link(j);
}

/// While no list has named one: of those that streams say, what gives the job most.
void roster::suggest_class(std::uint32_t row, std::uint32_t class_key) {
  job const& j = jobs[row];
  if (!j.votes.empty()) return;
  bool const is_first = j.uses - j.away == 1;
  if (is_first || worth_of(policy_, class_key) > worth_of(policy_, j.class_key))
    set_class(row, class_key);
}

void roster::index_supplies(child& c, std::vector<std::uint32_t> const& keys) {
  c.keys = keys;
  c.supply.clear();
  for (std::uint32_t key : keys) c.supply.push_back(policy_.supply_of(key));
}

void roster::sent(stream& s, rate value) {
  rate const before = s.held();
  s.given = value;
  s.held_new = std::max(s.held_new, value);
  at(s.job, s.supply).held += s.held() - before;
}

/// A message was acknowledged: everything sent before it is out of force. `newest`: it was the
/// newest, so only that one is in force.
bool roster::acknowledged(stream& s, bool newest) {
  rate const before = s.held();
  s.held_old = newest ? s.given : std::max(s.held_new, s.given);
  s.held_new = 0;
  flow& f = at(s.job, s.supply);
  f.held -= before - s.held();
  f.unknown -= s.unknown;
  bool const learnt = s.unknown;
  s.unknown = false;
  return (learnt || before > s.held()) && f.deal.limit != unbounded;
}

bool roster::acknowledged(child& c, bool newest) {
  bool freed = false;
  for (stream& s : c.streams) freed |= acknowledged(s, newest);
  c.acknowledged = true;
  c.mark = c.sequence;
  c.mark_until = 0;
  return freed;
}

/// Who has not applied this message, nor a later one, has only what was sent before it.
void roster::sent(child& c, time_ns now, time_ns until) {
  if (c.split_from != 0 && c.mark_until == 0) c.mark_until = std::max(c.given_until, now);
  c.given_until = until;
}

void roster::drop_held(stream& s) {
  flow& f = at(s.job, s.supply);
  f.held -= s.held();
  f.unknown -= s.unknown;
  s.unknown = false;
  s.given = s.held_old = s.held_new = 0;
}

/// The stream is about to go: what it held stays behind.
void roster::leave_ghost(child& c, stream& s) {
  if (s.held() > 0 && c.given_until != 0) {
    c.ghosts.push_back({s.job, s.supply, s.held(), c.sequence, c.given_until});
    use(s.job);
    at(s.job, s.supply).held += s.held();
  }
  drop_held(s);
  unuse(s.job);
}

/// True when one was laid.
bool roster::lay_ghosts(child& c, std::uint64_t applied, time_ns now) {
  return std::erase_if(c.ghosts, [&](ghost const& g) {
           if (applied <= g.sequence && now < g.until) return false;
           at(g.job, g.supply).held -= g.held;
           unuse(g.job);
           return true;
         }) > 0;
}

news roster::take(std::uint32_t number, wire::report const& r, time_ns now) {
  child& c = children[number];
  news n;
  std::uint64_t const incarnation = r.lease.child_incarnation;
  n.is_old =
      incarnation < c.incarnation || (incarnation == c.incarnation && r.lease.t_child < c.t_child);
  if (n.is_old) return n;
  c.incarnation = incarnation;
  c.t_child = r.lease.t_child;
  c.heard_at = now;
  c.policy_hash = r.policy_hash;
  if (c.keys != r.supplies) index_supplies(c, r.supplies);
  if (!r.same_streams && !are_same_streams(c, r)) reorder(c, r, n, now);
  c.named |= !r.same_streams;
  bool const splits = c.named && c.split_from != 0 && r.applied_sequence >= c.split_from;
  bool const newest = splits && r.applied_sequence == c.sequence;
  bool const later =
      newest || (splits && r.applied_sequence > c.mark && r.applied_sequence < c.sequence);
  if (!r.same_streams) take_streams(c, r, n);
  if (later) n.freed |= acknowledged(c, newest);
  if (splits && !c.ghosts.empty() && r.applied_sequence <= c.sequence)
    n.freed |= lay_ghosts(c, r.applied_sequence, now);
  return n;
}

/// What each stream says, in our order by now.
void roster::take_streams(child& c, wire::report const& r, news& n) {
  rate const most = c.is_relay ? most_of_relay : most_of_node;
  if (c.is_relay) c.bins = r.bins;
  std::size_t at = 0, bin = 0;
  for (wire::stream_report const& said : r.streams) {
    // A stream that reorder() left out (unknown supply, said twice) is not in ours.
    if (at == c.streams.size()) break;
    stream& s = c.streams[at];
    if (said.job != s.key || said.supply >= c.supply.size() || c.supply[said.supply] != s.supply)
      continue;
    s.bins = no_bins;
    if (said.has_bins && c.is_relay) {
      auto const place = static_cast<std::uint32_t>(&said - r.streams.data());
      while (bin < r.bins.size() && r.bins[bin].stream < place) ++bin;
      s.bins = static_cast<std::uint32_t>(bin);
      while (bin < r.bins.size() && r.bins[bin].stream == place) ++bin;
      s.bin_count = static_cast<std::uint32_t>(bin) - s.bins;
      s.blocked_nodes = std::min(said.blocked, most_nodes_of_relay);
      s.blocked_weight =
          std::min(said.blocked_weight, std::uint64_t{s.blocked_nodes} * most_processes_of_node);
    }
    ++at;
    bool const blocked = is_blocked(said);
    n.edge |= blocked != s.blocked;
    s.blocked = blocked;
    s.blocked_ppm = blocked ? std::max(said.blocked_ppm, 1u) : 0;
    s.served = served_of(c, said, policy_.supplies[s.supply].unit);
    s.waiting = std::min(said.waiting, most);
    s.waiters = std::min(said.waiters, nodes_of(c, said) * most_processes_of_node);
    s.need = said.need;
    s.nodes = nodes_of(c, said);
    if (said.class_key == s.class_key) continue;
    s.class_key = said.class_key;
    suggest_class(s.job, s.class_key);
  }
}

std::uint32_t roster::nodes_below(child const& c, std::uint32_t supply) const {
  std::uint64_t sum = 0;
  for (stream const& s : c.streams) sum += s.supply == supply ? s.nodes : 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, most_nodes_of_relay));
}

/// What a child brings anew must leave before it may bring more: nothing of it grows without end.
bool roster::has_room(child const& c) const {
  std::size_t const most = c.is_relay ? most_streams_of_relay : most_streams_of_node;
  return scratch_.size() < most && c.ghosts.size() < most;
}

/// Brings our streams of a child into the order of its report; those it no longer names are gone.
void roster::reorder(child& c, wire::report const& r, news& n, time_ns now) {
  scratch_.clear();
  for (std::size_t i = 0; i < c.streams.size(); ++i)
    slots_[c.streams[i].job * width_ + c.streams[i].supply] = static_cast<std::uint32_t>(i + 1);
  for (wire::stream_report const& said : r.streams) {
    std::uint32_t const supply =
        said.supply < c.supply.size() && said.supply < r.lease.supply.size() ? c.supply[said.supply]
                                                                             : no_supply;
    if (supply == no_supply || said.job == 0) continue;
    std::uint32_t row = job_of(said.job);
    if ((row == nobody || slots_[row * width_ + supply] == 0) && !has_room(c)) continue;
    if (row == nobody) row = job_row(said.job);
    std::uint32_t& slot = slots_[row * width_ + supply];
    if (slot == taken) continue;
    if (slot == 0) {
      stream s;
      s.key = said.job, s.job = row, s.supply = supply, s.class_key = said.class_key;
      use(row);
      suggest_class(row, said.class_key);
      bool const may_hold = !c.acknowledged && now < forgot_until;
      s.unknown = may_hold && r.lease.supply[said.supply].held > 0;
      at(row, supply).unknown += s.unknown;
      scratch_.push_back(s);
      n.edge = true;
    } else {
      scratch_.push_back(c.streams[slot - 1]);
    }
    slot = taken;
  }
  std::vector<std::uint32_t> left;
  for (stream& s : c.streams) {
    if (slots_[s.job * width_ + s.supply] == taken) continue;
    slots_[s.job * width_ + s.supply] = 0;
    n.edge = true;
    left.push_back(s.job);
    leave_ghost(c, s);
  }
  end_tenancies(c, r, left);
  for (stream const& s : scratch_) slots_[s.job * width_ + s.supply] = 0;
  c.streams.swap(scratch_);
}

/// A job of which a whole report names no stream any more has ended there. Each report says so
/// again, so none of them may be lost for it.
void roster::end_tenancies(child& c, wire::report const& r, std::span<std::uint32_t const> left) {
  wire::role const sender = c.is_relay ? wire::role::relay : wire::role::node;
  if (left.empty() || !wire::has_room_left(r, sender)) return;
  places_.resize(jobs.size(), 0);
  for (std::uint32_t row : left) places_[row] = taken;
  for (wire::stream_report const& said : r.streams)
    if (std::uint32_t const row = job_of(said.job); row != nobody) places_[row] = 0;
  std::erase_if(c.jobs, [&](tenancy& t) {
    bool const is_over = places_[t.job] == taken;
    if (is_over) leave(t);
    return is_over;
  });
  for (std::uint32_t row : left) places_[row] = 0;
}

/// The key says whose job it is: an entry that does not fit it speaks of somebody else's.
bool roster::is_theirs(wire::job_entry const& e) const {
  if (e.job == 0) return false;
  std::uint32_t const row = job_of(e.job);
  bool const is_named = row != nobody && !jobs[row].name.empty();
  if (is_named) return jobs[row].uid == e.uid && jobs[row].name == e.name;
  return e.job == wire::job_key(e.uid, e.name);
}

void roster::take(std::uint32_t number, wire::job_list const& l, time_ns now) {
  child& c = children[number];
  std::size_t const most = c.is_relay ? most_jobs_of_relay : most_jobs_of_node;
  places_.resize(jobs.size(), 0);
  for (std::uint32_t i = 0; i < c.jobs.size(); ++i) places_[c.jobs[i].job] = i + 1;
  for (wire::job_entry const& e : l.jobs) {
    if (!is_theirs(e)) continue;
    std::uint32_t row = job_of(e.job);
    if (row == nobody || places_[row] == 0) {
      if (c.jobs.size() >= most) continue;
      row = job_row(e.job);
      if (!jobs[row].is_here()) jobs[row].is_announced = false;
      use(row);
      c.jobs.push_back({.job = row});
      places_.resize(jobs.size(), 0);
      places_[row] = static_cast<std::uint32_t>(c.jobs.size());
    }
    tenancy& t = c.jobs[places_[row] - 1];
    set_away(t, is_mere_name(c, e));
    vote(t, e);
    t.processes = processes_of(c, e.processes);
    t.escaped = processes_of(c, e.escaped);
    t.is_watched = e.watched;
    t.heard_at = now;
    jobs[row].name = e.name;
    jobs[row].uid = e.uid;
    has_new_jobs |= !jobs[row].is_announced;
    elect(row);
  }
  for (tenancy const& t : c.jobs) places_[t.job] = 0;
}

/// Who has nothing but its name has no vote.
void roster::vote(tenancy& t, wire::job_entry const& e) {
  if (t.has_vote && !t.is_away && t.class_key == e.class_key) return;
  withdraw(t);
  t.class_key = e.class_key;
  t.has_vote = !t.is_away;
  if (!t.has_vote) return;
  std::vector<class_vote>& votes = jobs[t.job].votes;
  auto at = std::ranges::find(votes, t.class_key, &class_vote::key);
  if (at == votes.end()) at = votes.insert(at, {t.class_key, 0, e.qos_class});
  ++at->children;
}

void roster::withdraw(tenancy& t) {
  if (!std::exchange(t.has_vote, false)) return;
  std::vector<class_vote>& votes = jobs[t.job].votes;
  auto const at =
      std::find_if(votes.begin(), votes.end(), [&](auto& v) { return v.key == t.class_key; });
  if (at != votes.end() && --at->children == 0) votes.erase(at);
}

/// What most children say holds. When as many say another, what gives the job more: so one that
/// names another's job helps it at most, and the order of their lists makes no job swing.
void roster::elect(std::uint32_t row) {
  job& j = jobs[row];
  class_vote const* best = nullptr;
  auto const is_better = [&](class_vote const& a, class_vote const& b) {
    if (a.children != b.children) return a.children > b.children;
    auto const of_a = worth_of(policy_, a.key), of_b = worth_of(policy_, b.key);
    return of_a != of_b ? of_a > of_b : a.key == j.class_key;
  };
  for (class_vote const& v : j.votes)
    if (best == nullptr || is_better(v, *best)) best = &v;
  if (best == nullptr) return;
  j.qos_class = best->name;
  set_class(row, best->key);
}

bool roster::expire(child& c, time_ns now, std::int64_t cycle_ns) {
  std::int64_t const most_ns = std::max(tenancy_ns, 3 * cycle_ns);  // a list leaves with a report
  std::size_t kept = 0;
  std::erase_if(c.jobs, [&](tenancy& t) {
    time_ns const age_ns = now - t.heard_at;
    if (age_ns < most_ns) return false;
    bool const may_stay =
        !c.live && age_ns < absences::unseen_most_ns && ++kept <= most_remembered_of_child;
    if (may_stay && remember(t)) return false;
    leave(t);
    return true;
  });
  bool const freed = !c.ghosts.empty() && lay_ghosts(c, 0, now);
  bool const has_ended = c.mark_until != 0 && now >= c.mark_until;
  return (has_ended && acknowledged(c, false)) || freed;
}

/// False: so many are, that there is no room.
bool roster::remember(tenancy& t) {
  if (t.is_remembered) return true;
  if (remembered_ >= most_remembered) return false;
  set_away(t, true);
  withdraw(t);
  elect(t.job);
  t.is_remembered = true;
  ++remembered_;
  return true;
}

void roster::leave(tenancy& t) {
  set_away(t, false);
  withdraw(t);
  elect(t.job);
  unuse(t.job);
}

void roster::set_away(tenancy& t, bool is_away) {
  std::uint32_t& away = jobs[t.job].away;
  away -= t.is_away;
  away += t.is_away = is_away;
  if (!is_away) remembered_ -= std::exchange(t.is_remembered, false);
}

void roster::drop_streams(child& c) {
  for (stream& s : c.streams) {
    drop_held(s);
    unuse(s.job);
  }
  lay_ghosts(c, ~std::uint64_t{0}, 0);
  c.named = false;
  c.streams.clear();
  c.bins.clear();
}

void roster::clear(child& c) {
  drop_streams(c);
  for (tenancy& t : c.jobs) leave(t);
  c.jobs.clear();
}

/// Our parent has heard that its jobs are over.
void roster::welcome_back(child& c, time_ns now) {
  for (tenancy& t : c.jobs) {
    t.heard_at = now;
    jobs[t.job].is_announced = false;
    has_new_jobs = true;
  }
}

void roster::silence(child& c) {
  drop_streams(c);
  for (tenancy& t : c.jobs) set_away(t, true);
}

}  // namespace sluice::cluster
