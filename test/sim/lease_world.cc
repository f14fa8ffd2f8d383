// SPDX-License-Identifier: Apache-2.0
// Processes, their messages and what they do with them: the shell that a daemon is around the
// lease machines, with time and network made up.
#include "lease_world.h"

#include <algorithm>

#include "lib/lease_memory.h"

namespace sluice::sim {

using kind = process::kind;

world_config draw_config(random& dice, std::string const& shape, lease::rules const& obeys) {
  world_config c;
  c.shape = shape;
  c.obeys = obeys;
  c.nodes = static_cast<unsigned>(dice.between(1, 8));
  c.clusters = static_cast<unsigned>(dice.between(1, 3));
  c.supplies = static_cast<unsigned>(dice.between(1, 3));
  if (shape != "flat") {
    c.relays = static_cast<unsigned>(dice.between(1, 3));
    c.nodes = std::max(c.nodes, c.relays);
    c.clusters = std::min(c.clusters, 2u);
  }
  if (c.clusters > 1) {
    c.owner = dice.chance(700'000) ? lease::pool_owner::majority : lease::pool_owner::none;
  }
  c.time = lease::timers_of(100 * ms, dice.chance(700'000) ? 1000 * ms : 500 * ms, 0);
  if (dice.chance(200'000)) c.time.drift_ppm = 30'000;
  c.clock_ppm = c.time.drift_ppm * 9 / 10;
  static constexpr std::uint32_t escrows[] = {290'000, 0, 900'000, 500'000};
  c.escrow_ppm = c.owner == lease::pool_owner::none ? 990'000 : escrows[dice.below(4)];
  static constexpr std::uint32_t losses[] = {0, 10'000, 50'000, 200'000};
  c.lost_ppm = losses[dice.below(4)];
  c.delay_most = (dice.chance(700'000) ? 10 : 60) * ms;
  c.asks = static_cast<unsigned>(dice.below(3));
  c.fault_mean = (dice.chance(500'000) ? 4000 : 1000) * ms;
  return c;
}

world::world(world_config const& c, std::uint64_t seed) : config_(c), dice_(seed) {
  make_capacity();
  build();
  unsigned const n = static_cast<unsigned>(processes_.size());
  cut_.assign(n, std::vector<bool>(n, false));
  for (unsigned i = 0; i < n; ++i) {
    process& p = processes_[i];
    p.clock.offset = dice_.between(0, 1000) * 3'600'000 * ms;
    p.clock.ppm = dice_.between(-config_.clock_ppm, config_.clock_ppm);
    start(i);
    if (p.up) schedule(dice_.between(0, config_.time.cycle_ns), event_kind::report, i);
    if (p.down) schedule(dice_.between(0, config_.time.cycle_ns), event_kind::cycle, i);
  }
  schedule(0, event_kind::look, 0);
  schedule(dice_.between(0, 2 * config_.fault_mean), event_kind::fault, 0);
  if (config_.calms) schedule(20'000 * ms, event_kind::calm, 0);
}

void world::make_capacity() {
  for (unsigned s = 0; s < config_.supplies; ++s) {
    rate const c = 1'000'000 * (1 + dice_.below(300));
    rate const n = config_.nodes;
    capacity_.push_back(c);
    escrow_.push_back(c / 1'000'000 * config_.escrow_ppm / n);
    floor_.push_back(c / 1'000'000 * config_.floor_ppm / n);
    bool const none = config_.owner == lease::pool_owner::none;
    pool_.push_back(none ? 0 : c - n * (escrow_.back() + floor_.back()));
  }
  allowed_ = capacity_;
}

std::vector<lease::supply_terms> world::terms() const {
  std::vector<lease::supply_terms> t;
  for (unsigned s = 0; s < config_.supplies; ++s) {
    t.push_back({pool_[s], config_.nodes, config_.nodes * escrow_[s]});
  }
  return t;
}

lease::timers world::timers_at(unsigned level) const {
  lease::timers t = config_.time;
  t.level = level;
  return t;
}

// Clusters first, then relays, then nodes. `deep`: the first relay is above the others. `mixed`:
// nodes may go to any relay, and to the clusters.
void world::build() {
  unsigned const k = config_.clusters, r = config_.relays;
  processes_.resize(k + r + config_.nodes);
  for (unsigned i = 0; i < processes_.size(); ++i) {
    process& p = processes_[i];
    p.what = i < k ? kind::cluster : i < k + r ? kind::relay : kind::node;
    p.demand.assign(config_.supplies, 1000);
    bool const deep = config_.shape == "deep" && r > 1;
    if (p.what == kind::cluster) continue;
    if (p.what == kind::relay && deep && i > k) {
      p.parents = {k};
    } else if (p.what == kind::relay || r == 0) {
      for (unsigned c = 0; c < k; ++c) p.parents.push_back(c);
    } else {
      unsigned const leaf = deep ? r - 1 : r;
      unsigned const first = k + (deep ? 1 : 0);
      p.parents = {first + (i - k - r) % leaf};
      if (config_.shape == "mixed") {
        p.parents.push_back(k + (i + 1) % r);
        p.parents.push_back(i % k);
      }
    }
    p.level = processes_[p.parents[0]].level + (p.what == kind::relay ? 1 : 0);
  }
  for (unsigned i = 0; i < processes_.size(); ++i) {
    for (unsigned up : processes_[i].parents) {
      auto& c = processes_[up].children;
      if (std::find(c.begin(), c.end(), i) == c.end()) c.push_back(i);
    }
  }
}

// Fresh machines. What the child remembers is the caller's business.
void world::start(unsigned id) {
  process& p = processes_[id];
  lease::timers const t = timers_at(p.level);
  if (p.what != kind::node) {
    lease::parent::settings s;
    s.time = t;
    s.owner = config_.owner;
    s.relay = p.what == kind::relay;
    s.obeys = config_.obeys;
    p.down.emplace(s, p.incarnation, local(p));
    auto list = terms();
    if (s.relay) {
      for (auto& x : list) x.pool = 0;
    }
    p.down->set_terms(list);
  }
  if (p.what == kind::cluster) return;
  lease::timers above = t;
  above.level = processes_[p.parents[p.at]].level;
  p.up.emplace(above, p.incarnation, config_.obeys);
  std::vector<lease::child::own> mine(config_.supplies);
  for (unsigned s = 0; s < config_.supplies && p.what == kind::node; ++s) {
    mine[s] = {floor_[s], escrow_[s], 1};
  }
  if (p.what == kind::relay) {
    for (auto& m : mine) m.members = 0;
  }
  p.up->set_own(mine);
}

void world::schedule(ns at, event_kind k, unsigned who) { queue_.push({at, order_++, k, who}); }

bool world::reaches(unsigned a, unsigned b) const { return !cut_[a][b]; }

ns world::far_of(unsigned id) const {
  process const& p = processes_[id];
  return now_ < p.far_until ? p.far : 0;
}

void world::send(message&& m) {
  bool const late = !calm_ && dice_.chance(config_.late_ppm);
  bool const doubled = !calm_ && dice_.chance(config_.doubled_ppm);
  if (!calm_ && (dice_.chance(config_.lost_ppm) || !reaches(m.from, m.to))) return;
  ns const most = calm_ ? 2 * ms : late ? 3000 * ms : config_.delay_most;
  for (int copy = 0; copy < (doubled ? 2 : 1); ++copy) {
    unsigned slot = static_cast<unsigned>(messages_.size());
    if (spare_.empty()) {
      messages_.emplace_back();
    } else {
      slot = spare_.back();
      spare_.pop_back();
    }
    messages_[slot] = m;
    ns const far = far_of(m.from) + far_of(m.to);
    schedule(now_ + far + dice_.between(ms / 10, most), event_kind::deliver, slot);
  }
}

// ---- a daemon's life ----

void world::run(std::uint64_t cycles) {
  ns const end = now_ + static_cast<ns>(cycles) * config_.time.cycle_ns;
  while (!broken_ && !queue_.empty() && queue_.top().at <= end) {
    event const e = queue_.top();
    queue_.pop();
    now_ = e.at;
    ++counts_.events;
    handle(e);
  }
  if (!broken_) now_ = end;
}

void world::handle(event const& e) {
  switch (e.kind) {
    case event_kind::deliver:
      deliver(e.who);
      check_sum();
      break;
    case event_kind::report:
      schedule(now_ + config_.time.cycle_ns, e.kind, e.who);
      report_of(e.who);
      check_sum();
      break;
    case event_kind::cycle:
      schedule(now_ + config_.time.cycle_ns, e.kind, e.who);
      cycle_of(e.who);
      break;
    case event_kind::look:
      schedule(now_ + 10 * ms, e.kind, 0);
      look();
      break;
    case event_kind::fault:
      schedule(now_ + dice_.between(ms, 2 * config_.fault_mean), e.kind, 0);
      if (!calm_) fault();
      check_sum();
      break;
    case event_kind::heal:
      for (auto& row : cut_) row.assign(row.size(), false);
      break;
    case event_kind::revive:
      revive(e.who);
      check_sum();
      break;
    case event_kind::calm:
      if (calm_) {
        end_calm();
      } else {
        begin_calm();
      }
      break;
  }
}

void world::deliver(unsigned slot) {
  process& p = processes_[messages_[slot].to];
  if (p.stopped_until > now_) {  // its queue is read when it goes on
    schedule(p.stopped_until, event_kind::deliver, slot);
    return;
  }
  message const m = std::move(messages_[slot]);
  spare_.push_back(slot);
  if (!p.is_running) return;
  // The connection of an earlier life is gone, whatever its number was.
  if (m.is_report && m.up.child_incarnation > processes_[m.from].incarnation) return;
  if (m.is_report && p.down) on_report(p, m.to, m);
  if (!m.is_report && p.up) on_grant(p, m.to, m);
}

void world::report_of(unsigned id) {
  process& p = processes_[id];
  if (!p.is_running || !p.up || p.stopped_until > now_) return;
  ns const t = local(p);
  if (p.parents.size() > 1 && p.up->is_silent(t)) {
    p.at = (p.at + 1) % static_cast<unsigned>(p.parents.size());
    p.up->set_timers(timers_at(processes_[p.parents[p.at]].level));
    note("turns to", id, p.parents[p.at]);
  }
  if (p.down) {
    lease::relay_serve(*p.up, *p.down, config_.supplies, t);
    lease::relay_lend(*p.up, *p.down, config_.supplies, t);
  }
  message m;
  m.from = id;
  m.to = p.parents[p.at];
  m.is_report = true;
  m.up = p.up->make_report(m.to + 1, t);
  lease::child_memory now_held = p.up->memory();
  if (!p.disk || !test::is_same_state(now_held, *p.disk) || dice_.chance(100'000)) {
    p.disk = std::move(now_held);
  }
  p.reported = now_;
  note(m.up.lend ? "report, lends" : "report", id, m.to,
       static_cast<std::int64_t>(m.up.supply[0].held));
  send(std::move(m));
}

void world::on_report(process& p, unsigned id, message const& m) {
  ns const t = local(p);
  if (p.up) lease::relay_serve(*p.up, *p.down, config_.supplies, t);
  if (m.up.child_incarnation == processes_[m.from].incarnation)
    p.down->hello(m.from, m.up.child_incarnation, t);
  auto const heard = p.down->on_report(m.from, m.up, t);
  answer(id, m.from, false);
  if (!heard.freed) return;
  answer_all(id);
  if (p.up && lease::relay_owes_ack(*p.up, *p.down, config_.supplies, t) &&
      now_ - p.reported >= 5 * ms) {
    report_of(id);
  }
}

void world::on_grant(process& p, unsigned id, message const& m) {
  ns const t = local(p);
  bool const changed = p.up->on_grant(m.from + 1, m.down, t);
  note(changed ? "grant, changed" : "grant", m.from, id,
       static_cast<std::int64_t>(p.up->granted(0, t)));
  if (p.down) {
    lease::relay_serve(*p.up, *p.down, config_.supplies, t);
    if (changed) answer_all(id);
  }
  if (changed && now_ - p.reported >= 5 * ms) report_of(id);
}

void world::cycle_of(unsigned id) {
  process& p = processes_[id];
  if (!p.is_running || p.stopped_until > now_) return;
  if (p.up) lease::relay_serve(*p.up, *p.down, config_.supplies, local(p));
  answer_all(id);
}

void world::answer_all(unsigned id) {
  for (unsigned c : processes_[id].children) answer(id, c, true);
}

void world::answer(unsigned id, unsigned child, bool again) {
  process& p = processes_[id];
  ns const t = local(p);
  static thread_local std::vector<rate> want, before;
  wanted(p, child, want);
  before.clear();
  for (unsigned s = 0; s < config_.supplies; ++s) before.push_back(p.down->current(child, s, t));
  if (again && !p.down->is_live(child, t)) return;
  auto g = p.down->answer(child, want, t);
  if (!g) return;
  check_answer(p, child, *g, before);
  message m;
  m.from = id;
  m.to = child;
  m.down = std::move(*g);
  send(std::move(m));
}

// ---- what parents want to give ----

rate world::demand_below(unsigned id, unsigned supply) const {
  process const& p = processes_[id];
  if (p.what == kind::node) return p.demand[supply];
  rate sum = 0;
  for (unsigned c : p.children) {
    process const& child = processes_[c];
    if (child.parents[child.at] == id) sum += demand_below(c, supply);
  }
  return sum;
}

void world::wanted(process const& p, unsigned child, std::vector<rate>& out) {
  out.clear();
  unsigned const id = static_cast<unsigned>(&p - processes_.data());
  for (unsigned s = 0; s < config_.supplies; ++s) {
    if (config_.asks == 1 && !calm_) {
      out.push_back(dice_.below(capacity_[s]));
    } else if (config_.asks == 2 && !calm_) {
      out.push_back(capacity_[s]);
    } else {
      rate const all = demand_below(id, s), mine = demand_below(child, s);
      unsigned __int128 const part = static_cast<unsigned __int128>(capacity_[s]) * mine;
      out.push_back(all == 0 ? 0 : static_cast<rate>(part / all));
    }
  }
}

}  // namespace sluice::sim
