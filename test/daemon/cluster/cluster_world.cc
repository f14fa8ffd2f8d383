// SPDX-License-Identifier: Apache-2.0
#include "cluster_world.h"

#include <algorithm>

namespace cluster_world {

tenant& node::add(core::job_id job, std::uint32_t qos_class, std::vector<rate> appetite) {
  tenant t;
  t.job = job;
  t.qos_class = qos_class;
  t.given.resize(appetite.size());
  t.allowed.resize(appetite.size());
  t.blocked.resize(appetite.size());
  t.appetite = std::move(appetite);
  jobs.push_back(t);
  at_once = streams_due = true;
  return jobs.back();
}

void node::remove(core::job_id job) {
  std::erase_if(jobs, [&](tenant const& t) { return t.job == job; });
  at_once = streams_due = true;
}

tenant* node::find(core::job_id job) {
  for (tenant& t : jobs)
    if (t.job == job) return &t;
  return nullptr;
}

bool station::send(std::uint32_t child, wire::message const& m) {
  below const& b = children.at(child);
  all->post({.to_parent = false, .relay = b.is_relay, .child = b.index, .body = m});
  return true;
}

unsigned world::add_cluster() {
  auto s = std::make_unique<station>();
  s->all = this;
  s->self = static_cast<unsigned>(stations.size());
  stations.push_back(std::move(s));
  restart(stations.back()->self);
  return stations.back()->self;
}

unsigned world::add_relay(unsigned parent) {
  auto s = std::make_unique<station>();
  s->all = this;
  s->self = static_cast<unsigned>(stations.size());
  s->parent = parent;
  s->number = static_cast<unsigned>(stations[parent]->children.size());
  stations[parent]->children.push_back({true, s->self});
  s->is_relay = true;
  stations.push_back(std::move(s));
  restart(stations.back()->self);
  return stations.back()->self;
}

void world::storm(storm_rates const& rates) {
  if (random() % 40 != 0) return;
  node& n = *nodes[random() % nodes.size()];
  auto const one_in = [this](unsigned many) { return many > 0 && random() % many == 0; };
  auto const how = one_in(rates.back) ? clock_moves::back : clock_moves::on;
  if (one_in(rates.cut)) {
    n.cut = !n.cut;
  } else if (one_in(rates.reboot)) {
    reboot(n, how);
    n.jobs.clear();
  } else if (one_in(rates.restart)) {
    restart(static_cast<unsigned>(random() % stations.size()), one_in(rates.remembers), how);
  } else {
    std::uint64_t const job = 1 + random() % 4;
    rate const appetite = rate(random() % 60) * k;
    if (tenant* t = n.find(job))
      t->appetite[0] = appetite;
    else
      n.add(job, job <= rates.classes ? static_cast<std::uint32_t>(job) : 1, {appetite});
    if (random() % 4 == 0) n.remove(1 + random() % 4);
  }
}

void world::restart(unsigned index, bool remembers, clock_moves how) {
  station& s = *stations[index];
  s.life = incarnation(how);
  bool const is_relay = s.is_relay;
  cluster::arbiter::settings set;
  set.name = "station" + std::to_string(index);
  set.who = is_relay ? wire::role::relay : wire::role::cluster;
  set.time = lease::timers_of(form.cycle, form.lease, is_relay ? 1 : 0);
  s.up.reset();
  s.arbiter = std::make_unique<cluster::arbiter>(set, plan_of(form), s.life, now);
  if (!is_relay) return;
  s.up = std::make_unique<cluster::relay_side>(*s.arbiter, s.life);
  s.up->plan_changed();
  if (remembers && s.disk)
    s.up->remember(*s.disk, now);
  else
    s.up->booted(now);
  s.hello_at = -1;
}

node& world::add_node(unsigned parent) {
  auto n = std::make_unique<node>();
  n->name = "n" + std::to_string(nodes.size());
  n->station = parent;
  n->number = static_cast<unsigned>(stations[parent]->children.size());
  stations[parent]->children.push_back({false, static_cast<unsigned>(nodes.size())});
  for (std::size_t s = 0; s < form.capacity.size(); ++s) {
    rate const c = form.least(s);
    n->escrow.push_back(form.nodes ? c * 29 / 100 / form.nodes : 0);
    n->floor.push_back(form.nodes ? c / 100 / form.nodes : 0);
  }
  nodes.push_back(std::move(n));
  reboot(*nodes.back());
  return *nodes.back();
}

void world::reboot(node& n, clock_moves how) {
  n.incarnation = incarnation(how);
  unsigned const level = stations[n.station]->up ? 1 : 0;
  n.up = std::make_unique<lease::child>(lease::timers_of(form.cycle, form.lease, level),
                                        n.incarnation);
  std::vector<lease::child::own> own;
  for (std::size_t s = 0; s < n.escrow.size(); ++s) own.push_back({n.floor[s], n.escrow[s], 1});
  n.up->set_own(own);
  n.up->booted(now);
  n.greeted = n.awaiting = false;
  n.parent = n.parent_life = n.sequence = 0;
  n.next_report = now + static_cast<time_ns>(chance() * static_cast<double>(form.cycle / ms)) * ms;
  n.alive = true;
}

void world::post(packet p) {
  ++messages;
  unsigned const copies = 1 + (chance() < sky.twice);
  for (unsigned i = 0; i < copies; ++i) {
    if (chance() < sky.loss) continue;
    auto const span = static_cast<double>(sky.most - sky.least);
    wire_.emplace(now + sky.least + static_cast<time_ns>(chance() * span), p);
  }
}

void world::deliver(packet const& p) {
  if (p.relay) {
    station& r = *stations[p.child];
    if (!r.alive) return;
    station& parent = *stations[r.parent];
    if (!p.to_parent) return to_relay(r, p.body);
    if (parent.alive) to_station(parent, r.number, {r.arbiter->set().name, r.life}, p);
    return;
  }
  node& n = *nodes[p.child];
  if (n.cut || !n.alive) return;
  if (!p.to_parent) return to_node(n, p.body);
  if (stations[n.station]->alive)
    to_station(*stations[n.station], n.number, {n.name, n.incarnation}, p);
}

void world::to_station(station& at, unsigned number, cluster::caller const& who, packet const& p) {
  if (auto const* m = std::get_if<wire::hello>(&p.body))
    return at.arbiter->hello(number, *m, who, now, at);
  auto const* const said = std::get_if<wire::report>(&p.body);
  // The connection of an earlier life is gone, whatever its number was.
  if (said != nullptr && said->lease.child_incarnation > who.incarnation) return;
  auto const& met = at.arbiter->who().children;
  if (number >= met.size() || !met[number].known) {
    at.send(number, wire::restart{});
    return;
  }
  if (said != nullptr) at.arbiter->report(number, *said, now);
  if (auto const* m = std::get_if<wire::job_list>(&p.body)) at.arbiter->jobs(number, *m, now);
}

void world::to_node(node& n, wire::message const& m) {
  if (std::holds_alternative<wire::restart>(m)) n.greeted = n.awaiting = false;
  if (auto const* w = std::get_if<wire::welcome>(&m)) {
    n.parent = wire::peer_key(0, w->name);
    n.greeted = true;
    n.awaiting = false;
    n.at_once = n.streams_due = true;
    n.up->set_timers(lease::timers_of(w->cycle_ns, w->lease_ns, w->level));
  }
  auto const* g = std::get_if<wire::grant>(&m);
  if (g == nullptr || n.parent == 0) return;
  n.awaiting = false;
  if (n.up->on_grant(n.parent, g->lease, now)) n.at_once = true;
  if (n.up->parent_life() != g->lease.parent_incarnation) return;
  if (n.up->parent_life() < n.parent_life) n.sequence = 0;
  n.parent_life = n.up->parent_life();
  if (g->sequence <= n.sequence) return;
  n.sequence = g->sequence;
  if (g->streams.empty()) return;
  for (tenant& t : n.jobs) std::fill(t.given.begin(), t.given.end(), 0);
  for (wire::stream_grant const& s : g->streams)
    if (tenant* t = n.find(s.job)) t->given[s.supply] = s.value;
}

void world::to_relay(station& r, wire::message const& m) {
  if (std::holds_alternative<wire::restart>(m)) r.hello_at = -1;
  if (auto const* w = std::get_if<wire::welcome>(&m)) r.up->on_welcome(*w);
  if (auto const* g = std::get_if<wire::grant>(&m)) r.up->on_grant(*g, now);
}

/// What is in force: the split of the newest grant, cut to what the lease still gives.
void world::enforce(node& n) {
  for (std::size_t s = 0; s < n.escrow.size(); ++s) {
    rate const held = n.up->held(static_cast<unsigned>(s), now);
    rate sum = 0;
    for (tenant const& t : n.jobs) sum += t.given[s];
    for (tenant& t : n.jobs) {
      t.allowed[s] = sum > held
                         ? static_cast<rate>(static_cast<double>(t.given[s]) *
                                             static_cast<double>(held) / static_cast<double>(sum))
                         : t.given[s];
      bool const blocked = t.appetite[s] > t.allowed[s];
      if (blocked && !t.blocked[s]) n.at_once = n.streams_due = true;
      t.blocked[s] = blocked;
    }
  }
}

void world::report(node& n) {
  wire::report r;
  r.lease = n.up->make_report(n.parent, now);
  r.lease.supply.resize(n.escrow.size());
  for (auto const& s : top().policy().supplies) r.supplies.push_back(s.key);
  r.applied_sequence = n.sequence;
  r.early = n.at_once;
  r.same_streams = !n.streams_due && now < n.next_report;
  for (tenant const& t : n.jobs)
    for (std::size_t s = 0; s < t.appetite.size(); ++s) {
      wire::stream_report x;
      x.job = t.job;
      x.supply = static_cast<std::uint32_t>(s);
      x.class_key = t.qos_class;
      x.served = t.served(s);
      x.need = t.need;
      x.waiters = t.blocked[s] ? 4 : 0;
      x.waiting = x.waiters * 1000u;
      x.blocked_ppm = t.blocked[s] ? 1'000'000 : 0;
      if (!r.same_streams) r.streams.push_back(x);
    }
  unsigned const self = static_cast<unsigned>(
      std::find_if(nodes.begin(), nodes.end(), [&](auto& p) { return p.get() == &n; }) -
      nodes.begin());
  if (each_report) each_report(n, r);
  post({.to_parent = true, .relay = false, .child = self, .body = std::move(r)});
  n.awaiting = true;
  n.at_once = n.streams_due = false;
  n.reported_at = now;
  if (now >= n.next_report) n.next_report = std::max(n.next_report + form.cycle, now + ms);
}

void world::run_node(node& n) {
  if (!n.alive) return;
  enforce(n);
  unsigned const self = static_cast<unsigned>(
      std::find_if(nodes.begin(), nodes.end(), [&](auto& p) { return p.get() == &n; }) -
      nodes.begin());
  if (!n.greeted) {
    if (now - n.hello_at < 100 * ms) return;
    n.hello_at = now;
    wire::hello h;
    h.name = n.name;
    return post({.to_parent = true, .relay = false, .child = self, .body = h});
  }
  if (n.awaiting && now - n.reported_at < 2 * form.cycle) return;
  if ((n.at_once && now - n.reported_at >= 5 * ms) || now >= n.next_report) report(n);
}

void world::run_station(station& at) {
  if (!at.alive) return;
  bool const turned = at.arbiter->edge();
  if (at.up) at.up->serve(now);
  at.arbiter->settle(now, at);
  if (!at.up) return;
  if (!at.up->has_parent() || at.hello_at == -1) {
    if (at.hello_at >= 0 && now - at.hello_at < 100 * ms) return;
    at.hello_at = now;
    wire::hello h;
    h.who = wire::role::relay;
    h.name = at.arbiter->set().name;
    post({.to_parent = true, .relay = true, .child = at.self, .body = h});
    if (!at.up->has_parent()) return;
  }
  if (!at.up->wants_to_report(now, turned)) return;
  wire::report const& said = at.up->make_report(now);
  at.disk = at.up->up().memory();
  post({.to_parent = true, .relay = true, .child = at.self, .body = said});
  at.up->sent(now);
}

void world::step() {
  now += ms;
  while (!wire_.empty() && wire_.begin()->first <= now) {
    packet const p = std::move(wire_.begin()->second);
    wire_.erase(wire_.begin());
    deliver(p);
  }
  for (auto& s : stations) run_station(*s);
  for (auto& n : nodes) run_node(*n);
  if (each_step) each_step();
}

rate world::usable(std::size_t supply) const {
  rate sum = 0;
  for (auto const& n : nodes) sum += n->up->usable(static_cast<unsigned>(supply), now);
  return sum;
}

rate world::allowed(core::job_id job, std::size_t supply) const {
  rate sum = 0;
  for (auto const& n : nodes)
    for (tenant const& t : n->jobs)
      if (t.job == job) sum += t.allowed[supply];
  return sum;
}

rate world::served(core::job_id job, std::size_t supply) const {
  rate sum = 0;
  for (auto const& n : nodes)
    for (tenant const& t : n->jobs)
      if (t.job == job) sum += t.served(supply);
  return sum;
}

}  // namespace cluster_world
