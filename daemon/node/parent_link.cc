// SPDX-License-Identifier: Apache-2.0
#include "node/parent_link.h"

#include <algorithm>
#include <map>

#include "base/fair_room.h"
#include "node/enforcer.h"
#include "wire/codec.h"

namespace sluice::node {

namespace {

constexpr std::int64_t away_ns = 1'000'000'000;  // leases may have ended by then
constexpr std::int64_t announce_every_ns = 10'000'000'000;
constexpr std::int64_t shortest_cycle_ns = 10'000'000;
constexpr std::int64_t displaced_ns = 2 * runtime::uplink::refused_pause_ns + 2'000'000'000;
constexpr std::size_t jobs_per_list = 200;
constexpr std::int64_t turn_ns = 1'000'000'000;  // of streams that a report has no room for

wire::job_entry entry_of(job const& j, std::string const& qos_class) {
  wire::job_entry e;
  e.job = j.key;
  e.uid = j.record.uid;
  e.class_key = qos_class.empty() ? 0 : wire::class_key(qos_class);
  e.processes = j.processes;
  e.escaped = static_cast<std::uint32_t>(j.escapes.size());
  e.name = j.record.name;
  e.qos_class = qos_class.substr(0, 31);
  e.watched = j.record.monitor;
  return e;
}

void say_demand(wire::stream_report& to, stream const& s) {
  to.served = s.last.served;
  to.waiting = s.last.waiting;
  to.waiters = s.last.waiters;
  to.blocked_ppm = s.last.blocked_ppm;
  to.need = s.need.value_or(0);
}

}  // namespace

parent_link::parent_link(runtime::config const& config, runtime::services& services,
                         held_lease& lease, site_state const& site, job_table const& jobs)
    : config_(config),
      services_(services),
      lease_(lease),
      site_(site),
      jobs_(jobs),
      up_(wire::child_socket::make(*services.zmq, config.parents, services.keys,
                                   services.incarnation),
          {wire::role::node, config.name}, config.parents.size(), services.log) {}

// ---- hearing ----

runtime::uplink::news parent_link::hear(moment at) {
  auto news = up_.receive(at.mono_ns);
  if (news.welcome) welcome(*news.welcome);
  if (news.is_displaced) {
    lease_.child.displaced(at.boot_ns + displaced_ns);
    lease_.keep(site_);
  }
  return news;
}

void parent_link::apply(std::vector<wire::grant> const& grants, moment at) {
  for (auto const& g : grants) apply_one(g, at);
}

void parent_link::welcome(wire::welcome const& w) {
  welcomed_ = w;
  lease_.child.set_timers(lease::timers_of(w.cycle_ns, w.lease_ns, w.level));
  announced_ns_ = 0;
  streams_due_ = true;
}

void parent_link::apply_one(wire::grant const& g, moment at) {
  lease::grant mine = g.lease;
  mine.supply.clear();
  if (!g.lease.supply.empty()) mine.supply.resize(site_.supplies().size());
  std::size_t const n = std::min(g.supplies.size(), g.lease.supply.size());
  for (std::size_t i = 0; i < n; ++i)
    if (auto const supply = site_.find_supply(g.supplies[i]))
      mine.supply[*supply] = g.lease.supply[i];
  acknowledges_ = lease_.child.on_grant(up_.parent(), mine, at.boot_ns) || acknowledges_;
  lease_.keep(site_);
  if (g.lease.supply.empty()) return;
  bool const is_newer =
      g.lease.parent_incarnation != granting_incarnation_ || g.sequence >= applied_sequence_;
  if (!is_newer) return;
  granting_incarnation_ = g.lease.parent_incarnation;
  applied_sequence_ = g.sequence;
  is_split_ = !g.streams.empty();
  if (is_split_) apply_shares(g, n);
}

void parent_link::apply_shares(wire::grant const& g, std::size_t supplies) {
  std::map<core::job_id, job*> by_key;
  for (auto const& j : jobs_.all()) {
    by_key[j->key] = j.get();
    for (auto& s : j->streams) s.granted = 0, s.limit.reset();
  }
  for (auto const& given : g.streams) {
    auto const who = by_key.find(given.job);
    if (who == by_key.end() || given.supply >= supplies) continue;
    auto const supply = site_.find_supply(g.supplies[given.supply]);
    for (auto& s : who->second->streams)
      if (supply && s.supply == *supply) s.granted = given.value, s.limit = given.limit;
  }
}

// ---- telling ----

parent_link::reason parent_link::turn(bool due, bool has_news, std::int64_t cycle_ns, moment at) {
  bool const is_silent = lease_.child.is_silent(at.boot_ns);
  up_.maintain(is_silent, site_.hash(), at.mono_ns);
  // Whoever was away, it or we: by now it may have cleared what it knew of our jobs.
  if (!is_silent && at.boot_ns - heard_ns_ > away_ns) announced_ns_ = 0;
  if (!is_silent) heard_ns_ = at.boot_ns;
  if (!up_.has_credit(cycle_ns, at.mono_ns)) return reason::none;
  if (has_news && up_.may_be_early(at.mono_ns)) return reason::early;
  if (due) return reason::cycle;
  return acknowledges_ ? reason::acknowledge : reason::none;
}

void parent_link::announce_jobs(verbs::override_book const& overrides, moment at) {
  bool const all = announced_ns_ == 0 || at.mono_ns - announced_ns_ >= announce_every_ns;
  wire::job_list list;
  for (auto const& j : jobs_.all()) {
    if (!all && j->is_announced) continue;
    j->is_announced = true;
    list.jobs.push_back(entry_of(*j, class_in_force(*j, overrides.find(j->key))));
    if (list.jobs.size() < jobs_per_list) continue;
    up_.send(list);
    list.jobs.clear();
  }
  if (!list.jobs.empty()) up_.send(list);
  if (all) announced_ns_ = at.mono_ns;
}

/// Those in force, then those of earlier policies that are used.
void parent_link::list_supplies(wire::report& r, std::vector<bool> const& is_used) {
  auto const& all = site_.supplies();
  listed_.begin(all.size());
  for (unsigned i = 0; i < all.size(); ++i)
    if (all[i].is_shared()) listed_.add(i);
  for (unsigned i = 0; i < all.size(); ++i)
    if (is_used[i]) listed_.add(i);
  for (std::uint32_t i : listed_.numbers()) r.supplies.push_back(all[i].key);
}

wire::report parent_link::prepare(verbs::override_book const& overrides, steering& steered,
                                  std::vector<bool> const& is_used, reason why, moment at) {
  wire::report r;
  list_supplies(r, is_used);
  r.lease = lease_.child.make_report(up_.parent(), at.boot_ns);
  r.lease.supply = listed_.pick(r.lease.supply);
  r.policy_hash = site_.hash();
  r.applied_sequence = applied_sequence_;
  r.early = why == reason::early || acknowledges_;
  // Where nothing is acknowledged but grants, the streams are as they were.
  streams_due_ |= why != reason::acknowledge;
  r.same_streams = !streams_due_;
  if (!r.same_streams) put_streams(r, overrides, at);
  for (unsigned i = 0; i < r.supplies.size(); ++i) {
    policies::call_speeds const s = steered.take(listed_.numbers()[i]);
    if (s.calls != 0) r.speeds.push_back({i, s});
  }
  return r;
}

/// Where a report has no room for all, what is at work comes first, and each user has his part.
void parent_link::put_streams(wire::report& r, verbs::override_book const& overrides,
                              moment at) const {
  std::vector<room_wish> wishes;
  for (auto const& j : jobs_.all()) {
    auto const* const changed = overrides.find(j->key);
    std::string const& qos_class = class_in_force(*j, changed);
    bool const paused = changed != nullptr && changed->pause;
    for (auto const& s : j->streams) {
      if (listed_.place(s.supply) == wire::supply_list::left_out) continue;
      wire::stream_report& out = r.streams.emplace_back();
      out.job = j->key;
      out.supply = listed_.place(s.supply);
      out.class_key = qos_class.empty() ? 0 : wire::class_key(qos_class);
      if (!paused) say_demand(out, s);  // who is paused wants nothing
      wishes.push_back({owner_by(services_.owner_of, j->record.uid), 1, wire::is_at_work(out)});
    }
  }
  std::size_t const most = wire::most_streams(r.supplies.size());
  if (wishes.size() <= most) return;
  auto const turn = static_cast<std::uint64_t>(at.mono_ns / turn_ns);
  std::vector<bool> const has_room = fair_room(wishes, most, turn);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < has_room.size(); ++i)
    if (has_room[i]) r.streams[kept++] = r.streams[i];
  r.streams.resize(kept);
}

void parent_link::send(wire::report const& r, moment at) {
  lease_.keep(site_);
  up_.send(r, at.mono_ns);
  acknowledges_ = streams_due_ = false;
}

// ---- itself ----

void parent_link::use_keys(std::string const& path) {
  auto keys = std::make_unique<wire::security>(wire::read_keys(path));
  wire::security const* const old = keys_ ? keys_.get() : services_.keys;
  if (old != nullptr && wire::speak_alike(*old, *keys)) return;
  up_.replace(
      wire::child_socket::make(*services_.zmq, config_.parents, keys.get(), services_.incarnation));
  keys_ = std::move(keys);
  services_.log.info("keys read again", {{"keys", path}});
}

bool parent_link::is_heard(std::int64_t boot_ns) const {
  return up_.is_welcome() && !lease_.child.is_silent(boot_ns);
}

std::int64_t parent_link::cycle_ns() const {
  return welcomed_ && welcomed_->cycle_ns >= shortest_cycle_ns ? welcomed_->cycle_ns : 0;
}

}  // namespace sluice::node
