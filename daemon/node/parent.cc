// SPDX-License-Identifier: Apache-2.0
// The part of the state that speaks with the parent: what is heard becomes leases and policy, what
// was measured becomes reports.
// What stays true: before a report leaves, the curves hold the ends it promises and the lease file
// holds what it acknowledges.
#include <algorithm>
#include <unordered_map>

#include "node/clock.h"
#include "node/state.h"
#include "policy/error.h"

namespace sluice::node {

namespace {

constexpr std::int64_t away_ns = 1'000'000'000;  // leases may have ended by then
constexpr std::int64_t announce_every_ns = 10'000'000'000;
constexpr std::size_t jobs_per_list = 200;
// A report of a node must fit 64 KiB; a stream takes less than 60 bytes.
constexpr std::size_t most_streams = 1000;

wire::job_entry entry_of(job const& j, std::string const& qos_class) {
  wire::job_entry e;
  e.job = j.key;
  e.uid = j.record.uid;
  e.class_key = qos_class.empty() ? 0 : wire::class_key(qos_class);
  e.processes = j.processes;
  e.escaped = static_cast<std::uint32_t>(j.escapes.size());
  e.name = j.record.name;
  e.qos_class = qos_class.substr(0, 31);
  return e;
}

}  // namespace

void state::welcome(wire::welcome const& w) {
  welcomed_ = w;
  lease.set_timers(lease::timers_of(w.cycle_ns, w.lease_ns, w.level));
  announced_ns_ = 0;
  streams_due_ = true;
  gates.welcomed();
}

void state::listen(moment at) {
  if (!has_parent()) return;
  auto news = up->receive(at.mono_ns);
  if (news.welcome) welcome(*news.welcome);
  if (news.policy && policy::policy_hash(*news.policy) != refused_policy_) {
    try {
      use_policy(*news.policy, {"the policy of " + up->parent_name()}, at);
    } catch (error const& e) {
      refused_policy_ = policy::policy_hash(*news.policy);
      services.metrics.add(control::metric::policy_rejected_total);
      services.log.error("policy refused, the old one stays", {{"why", e.what()}});
    }
  }
  for (auto const& m : news.gates) gates.hear(m);
  for (auto& a : news.answers) asked.hear(std::move(a));
  for (auto const& g : news.grants) apply_grant(g, at);
  if (!news.grants.empty()) enforce(at);
}

void state::apply_grant(wire::grant const& g, moment at) {
  lease::grant mine = g.lease;
  mine.supply.clear();
  if (!g.lease.supply.empty()) mine.supply.resize(site.supplies().size());
  std::size_t const n = std::min(g.supplies.size(), g.lease.supply.size());
  for (std::size_t i = 0; i < n; ++i)
    if (auto const supply = site.find_supply(g.supplies[i]))
      mine.supply[*supply] = g.lease.supply[i];
  acknowledges_ = lease.on_grant(up->parent(), mine, at.boot_ns) || acknowledges_;
  keep_lease();
  if (g.lease.supply.empty()) return;
  bool const is_newer =
      g.lease.parent_incarnation != granting_incarnation_ || g.sequence >= applied_sequence_;
  if (!is_newer) return;
  granting_incarnation_ = g.lease.parent_incarnation;
  applied_sequence_ = g.sequence;
  is_split_ = !g.streams.empty();
  if (!is_split_) return;
  std::unordered_map<std::uint64_t, job*> by_key;
  for (auto const& j : jobs.all()) by_key[j->key] = j.get();
  for (auto const& j : jobs.all())
    for (auto& s : j->streams) s.granted = 0, s.is_bound = false;
  for (auto const& given : g.streams) {
    auto const who = by_key.find(given.job);
    if (who == by_key.end() || given.supply >= n) continue;
    auto const supply = site.find_supply(g.supplies[given.supply]);
    for (auto& s : who->second->streams)
      if (supply && s.supply == *supply) s.granted = given.value, s.is_bound = given.is_bound;
  }
}

wire::report state::make_report(bool early, moment at) {
  wire::report r;
  r.lease = lease.make_report(up->parent(), at.boot_ns);
  for (auto const& slot : site.supplies()) r.supplies.push_back(slot.key);
  r.lease.supply.resize(r.supplies.size());
  r.policy_hash = site.hash();
  r.applied_sequence = applied_sequence_;
  r.early = early;
  streams_due_ |= welcomed_->minor < wire::minor_of_same_streams;
  r.same_streams = !streams_due_;
  if (r.same_streams) return r;
  for (auto const& j : jobs.all()) {
    auto const* const changed = overrides.find(j->folder);
    std::string const& qos_class = class_in_force(*j, changed);
    bool const paused = changed != nullptr && changed->pause;
    for (auto const& s : j->streams) {
      if (r.streams.size() == most_streams) break;
      wire::stream_report out;
      out.job = j->key;
      out.supply = s.supply;
      out.class_key = qos_class.empty() ? 0 : wire::class_key(qos_class);
      if (!paused) {  // who is paused wants nothing
        out.served = s.last.served;
        out.waiting = s.last.waiting;
        out.waiters = s.last.waiters;
        out.blocked_ppm = s.last.blocked_ppm;
      }
      r.streams.push_back(out);
    }
  }
  return r;
}

void state::announce_jobs(moment at) {
  bool const all = announced_ns_ == 0 || at.mono_ns - announced_ns_ >= announce_every_ns;
  wire::job_list list;
  for (auto const& j : jobs.all()) {
    if (!all && j->is_announced) continue;
    j->is_announced = true;
    list.jobs.push_back(entry_of(*j, class_in_force(*j, overrides.find(j->folder))));
    if (list.jobs.size() < jobs_per_list) continue;
    up->send(list);
    list.jobs.clear();
  }
  if (!list.jobs.empty()) up->send(list);
  if (all) announced_ns_ = at.mono_ns;
}

void state::talk(bool due, moment at) {
  if (!has_parent()) return;
  bool const silent = lease.is_silent(at.boot_ns);
  up->maintain(silent, site.hash(), at.mono_ns);
  // Whoever was away, it or we: by now it may have cleared what it knew of our jobs.
  if (!silent && at.boot_ns - heard_ns_ > away_ns) announced_ns_ = 0;
  if (!silent) heard_ns_ = at.boot_ns;
  bool const early = has_news && up->may_be_early(at.mono_ns);
  if (!up->has_credit(cycle_ns(), at.mono_ns) || !(due || early || acknowledges_)) return;
  announce_jobs(at);
  if (early && !due) end_cycle(at);
  // Where nothing is acknowledged but grants, the streams are as they were.
  streams_due_ |= due || early;
  wire::report const r = make_report(early || acknowledges_, at);
  enforce(at);
  keep_lease();
  up->send(r, at.mono_ns);
  acknowledges_ = streams_due_ = false;
  if (due || early) has_news = false;
}

}  // namespace sluice::node
