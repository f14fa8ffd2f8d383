// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster_role.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/figures.h"
#include "cluster/unheard.h"
#include "policy/change.h"
#include "policy/control.h"

namespace sluice::cluster {

namespace {

using nlohmann::json;

/// It asks for what it would get if it waited, but nothing of it waits.
void tell_as_watched(verbs::stream_view& s) {
  s.waiting = s.waiters = s.blocked_ppm = 0;
  s.is_blocked = false;
  s.would_delay = s.served > s.granted ? s.served - s.granted : 0;
}

}  // namespace

std::optional<verbs::parent_view> cluster_role::parent() const {
  parent_link const* const above = c_.parent();
  if (above == nullptr) return std::nullopt;
  return verbs::parent_view{above->address(), above->name(), above->is_heard(boot_ns())};
}

void cluster_role::add_to_hello(json& answer, local::peer const&, json const&) const {
  answer["listen"] = c_.listens_at();
}

verbs::job_name cluster_role::name_of(std::size_t number) const {
  job const& j = at(number);
  bool const is_named = !j.name.empty();
  return {j.uid, is_named ? j.name : fmt::format("job-{:016x}{:016x}", j.key.high, j.key.low),
          j.key, j.is_here(), is_named};
}

verbs::stream_view cluster_role::view_of(std::uint32_t number, std::uint32_t supply) const {
  arbiter const& b = c_.decisions();
  flow const& f = known().at(number, supply);
  supply_row const& row = b.policy().supplies[supply];
  supply_state const& state = b.last().supplies[supply];
  verbs::stream_view v;
  v.supply = row.name;
  v.unit = row.unit;
  v.served = f.served;
  v.granted = f.granted;
  v.waiting = f.waiting;
  v.waiters = f.waiters;
  v.blocked_ppm = f.blocked_ppm;
  v.is_blocked = f.blocked;
  v.limit = f.deal.limit;
  v.reservation = f.deal.reservation;
  v.weight = f.deal.weight;
  if (!b.policy().enforce && f.served > f.granted) v.would_delay = f.served - f.granted;
  v.nodes = f.nodes;
  v.capacity = b.in_force(supply);
  v.steered = steered_view_of(b, supply);
  v.drift = drift_view_of(b, supply);
  if (state.overbooked) v.overbooked = state.reserved, v.bookable = state.bookable;
  return v;
}

job_total const& cluster_role::total_of(std::size_t number) const {
  std::uint64_t const cycle = c_.decisions().cycle();
  if (totals_cycle_ != cycle || totals_.size() != known().jobs.size()) {
    totals_ = known().totals();
    totals_cycle_ = cycle;
  }
  return totals_[number];
}

verbs::job_view cluster_role::look_at(std::size_t number) const {
  arbiter const& b = c_.decisions();
  roster const& r = known();
  auto const job_number = static_cast<std::uint32_t>(number);
  verbs::job_view v;
  v.uid = at(number).uid;
  v.name = name_of(number).name;
  v.qos_class = b.policy().classes[at(number).row].name;
  v.nodes = 0;
  for (std::uint32_t s = 0; s < r.width(); ++s) {
    flow const& f = r.at(job_number, s);
    v.nodes = std::max(v.nodes, f.nodes);
    if (f.streams > 0 && b.policy().supplies[s].capacity > 0)
      v.streams.push_back(view_of(job_number, s));
  }
  job_total const& total = total_of(number);
  v.processes = total.processes;
  v.is_watched = total.is_watched();
  if (v.is_watched)
    for (auto& s : v.streams) tell_as_watched(s);
  if (total.escaped > 0)
    v.escapes.push_back(
        {0, fmt::format("{} processes", total.escaped), "ask the daemon of the node"});
  return v;
}

verbs::job_details cluster_role::details_of(std::size_t) const {
  verbs::job_details d;
  d.has_policy = !c_.policy().text().empty();
  d.is_enforced = c_.decisions().policy().enforce;
  if (c_.decisions().is_obeying())
    d.deciders.push_back("The parent of this relay says what it may use.");
  return d;
}

std::vector<verbs::supply_view> cluster_role::supplies() const {
  arbiter const& b = c_.decisions();
  time_ns const now = boot_ns();
  std::vector<verbs::supply_view> out;
  for (std::uint32_t s = 0; s < b.last().supplies.size(); ++s) {
    supply_row const& row = b.policy().supplies[s];
    if (row.capacity == 0) continue;
    supply_state const& state = b.last().supplies[s];
    verbs::supply_view v = {row.name,      b.in_force(s), b.ledger().budget(s, now),
                            state.granted, state.served,  {},
                            row.unit};
    v.steered = steered_view_of(b, s);
    v.drift = drift_view_of(b, s);
    if (state.blocked_jobs == 0) v.demand = state.demand;
    out.push_back(std::move(v));
  }
  return out;
}

std::optional<verbs::node_view> cluster_role::node(std::size_t number) const {
  arbiter const& b = c_.decisions();
  child const& c = known().children[number];
  if (c.name.empty()) return std::nullopt;
  time_ns const now = boot_ns();
  auto const jobs = std::ranges::count(c.jobs, false, &tenancy::is_away);
  verbs::node_view v = {c.name, c.is_relay ? "relay" : "node",  state_of(c, now),
                        0,      static_cast<std::size_t>(jobs), {}};
  if (c.heard_at != 0) v.age_s = static_cast<double>(now - c.heard_at) / 1e9;
  std::vector<rate> served(known().width(), 0);
  for (stream const& s : c.streams) served[s.supply] += s.served;
  for (std::uint32_t s = 0; s < known().width(); ++s)
    if (b.policy().supplies[s].capacity != 0)
      v.supplies.push_back({b.policy().supplies[s].name, c.live ? served[s] : 0,
                            b.ledger().current(static_cast<std::uint32_t>(number), s, now)});
  return v;
}

void cluster_role::check_change(std::size_t number, change) const {
  if (c_.parent() != nullptr)
    throw usage_error("this is a relay: ask the cluster, which decides for all nodes");
  if (at(number).name.empty())
    throw sluice_error("its node has not told who this job is; try again in a moment");
  check_open();
}

std::vector<verbs::settable> cluster_role::settables(std::size_t number) const {
  arbiter const& b = c_.decisions();
  job const& j = at(number);
  std::vector<verbs::settable> out;
  for (std::uint32_t s = 0; s < b.policy().supplies.size(); ++s) {
    supply_row const& row = b.policy().supplies[s];
    if (row.capacity == 0) continue;
    auto const* const l = j.forced == nullptr ? nullptr : j.forced->limit_of(row.name);
    class_row const& own = b.policy().classes[b.policy().class_of(j.class_key)];
    rate const most = l != nullptr && !l->by_owner ? l->value : own.by_supply[s].limit;
    out.push_back({row.name, row.resource, row.unit, known().deal(j, s).limit, most});
  }
  if (out.empty()) throw usage_error("the policy shares nothing yet: there is nothing to set");
  return out;
}

void cluster_role::overrides_changed(std::size_t) { c_.overrides_changed(); }

verbs::policy_view cluster_role::policy() const {
  policy_keeper const& p = c_.policy();
  return {p.text().empty() ? nullptr : &p.site(), &p.text(), c_.decisions().policy().hash};
}

void cluster_role::check_apply() const {
  if (c_.parent() != nullptr)
    throw usage_error("this is a relay: its policy comes from the cluster, apply it there");
}

void cluster_role::check_open() const {
  if (std::string const why = c_.changes().why_closed(); !why.empty()) throw sluice_error(why);
}

std::string cluster_role::doubt_of_changes() {
  policy::site const* const site = policy().site;
  bool const has_standby = site != nullptr && site->control.pool == policy::pool_owner::majority;
  if (!c_.changes().keeps_changes())
    return "most nodes do not obey this controller: this holds for those that do, until they obey "
           "one that has most";
  if (!has_standby || !config().shared_dir.empty()) return {};
  return "no other controller learns of this without --shared-dir: when one takes over, make it "
         "there, too";
}

/// Children that this controller has heard, and are silent.
std::vector<std::string> cluster_role::unheard() const {
  std::vector<std::string> out;
  for (child const& c : known().children)
    if (c.heard_at != 0 && !c.live) out.push_back(c.name);
  std::ranges::sort(out);
  return out;
}

/// Reservations that fit each by itself and not together.
std::vector<std::string> cluster_role::warnings_of(policy::site const& site) const {
  std::vector<std::string> out = policy::cluster_warnings(site);
  if (policy::site const* const in_force = policy().site; in_force != nullptr)
    for (auto& line : overruns_of(unheard(), *in_force, site)) out.push_back(std::move(line));
  policy_table next = policy_table_of(site, "");
  align(next, c_.decisions().policy());
  for (std::uint32_t s = 0; s < next.supplies.size(); ++s) {
    supply_row const& row = next.supplies[s];
    if (row.capacity == 0) continue;
    rate sum = 0;
    std::uint32_t count = 0;
    for (job const& j : known().jobs) {
      if (j.key == 0) continue;
      rate const reserved = next.classes[row_in(next, j)].by_supply[s].reservation;
      sum += reserved;
      count += reserved > 0;
    }
    if (sum > row.capacity)
      out.push_back(fmt::format(
          "{}: the {} jobs that run now reserve {} together, the capacity is {}: each is scaled "
          "down while all want theirs",
          row.name, count, policy::bound_text(sum, row.unit),
          policy::bound_text(row.capacity, row.unit)));
  }
  return out;
}

std::vector<std::string> cluster_role::use_policy(std::string const& text,
                                                  runtime::policy_source const& source) {
  check_open();
  if (!c_.changes().keeps_changes())
    throw sluice_error(
        "most nodes obey another controller, or none yet, or the policy shares nothing: apply it "
        "at the one that they obey");
  c_.apply_policy(text, source);
  return {};
}

std::optional<json> cluster_role::ask_above(local::peer const&, verbs::verb, json const&) {
  return std::nullopt;
}

json cluster_role::serve_own(verbs::verb, local::peer const&, json const& request) {
  throw usage_error(fmt::format("a {} does not know \"{}\": ask the daemon of a node", kind(),
                                request.value("verb", "")));
}

}  // namespace sluice::cluster
