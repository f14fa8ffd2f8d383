// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cluster/figures.h"
#include "policy/change.h"
#include "runtime/dashboard.h"
#include "verbs/steered_metrics.h"
#include "verbs/views/steered.h"

namespace sluice::cluster {

namespace {

constexpr std::int64_t spacing_ns = 240'000'000;

using runtime::in_unit;
using runtime::metric;

double tokens(rate r) { return static_cast<double>(r) / 1000; }

struct class_sums {
  std::size_t jobs = 0;
  std::vector<rate> granted, served;
};

}  // namespace

std::optional<verbs::steered_view> steered_view_of(arbiter const& b, std::uint32_t supply) {
  policies::steer const* const by = b.steered(supply);
  if (by == nullptr) return std::nullopt;
  supply_row const& row = b.policy().supplies[supply];
  return verbs::steered_by(*row.steered, row.lowest, row.capacity, by->capacity(),
                           policies::name_of(by->sign()), by->slow_ppm());
}

std::optional<verbs::drift_view> drift_view_of(arbiter const& b, std::uint32_t supply) {
  policies::drift const* const d = b.drifted(supply);
  if (d == nullptr) return std::nullopt;
  return verbs::drift_view{policies::name_of(d->sign()), d->given(), d->costs().floor,
                           d->costs().most};
}

void figures::tell(std::vector<notice> const& notices) {
  for (notice const& n : notices) {
    switch (n.kind) {
      case notice::child_came:
        services_.log.info("child known", {{"child", n.about}});
        break;
      case notice::child_back:
        services_.log.info("child heard", {{"child", n.about}});
        break;
      case notice::child_silent:
        services_.log.warning("child silent", {{"child", n.about}});
        break;
      case notice::overbooked:
        services_.log.warning("reservations exceed capacity", {{"supply", n.about},
                                                               {"reserved", tokens(n.reserved)},
                                                               {"capacity", tokens(n.capacity)}});
        break;
      case notice::fits_again:
        services_.log.info("reservations fit", {{"supply", n.about}});
        break;
    }
  }
}

void figures::publish(arbiter const& b, standing const& at, time_ns now) {
  runtime::metric_table& m = services_.metrics;
  double const passed = published_at_ == 0 ? 0 : static_cast<double>(now - published_at_) / 1e9;
  published_at_ = now;
  m.set(metric::cycles_total, static_cast<double>(b.cycle()));
  m.set(metric::cycle_duration_seconds, static_cast<double>(at.settle_ns) / 1e9);
  m.set(metric::policy_load_timestamp_seconds, static_cast<double>(at.policy_loaded_s));
  if (at.is_parent_heard) m.set(metric::controller_connected, *at.is_parent_heard ? 1 : 0);
  double live = 0, silent = 0, gone = 0;
  for (child const& c : b.who().children) {
    if (c.name.empty()) continue;
    std::string_view const state = state_of(c, now);
    (state == "live" ? live : state == "silent" ? silent : gone) += 1;
  }
  m.set(metric::nodes, {"live"}, live);
  m.set(metric::nodes, {"silent"}, silent);
  m.set(metric::nodes, {"gone"}, gone);
  wire::peer_counts const& refused = at.refused;
  m.set(metric::refused_messages_total, {"malformed"}, double(refused.refused_malformed));
  m.set(metric::refused_messages_total, {"role"}, double(refused.refused_role));
  m.set(metric::refused_messages_total, {"name"}, double(refused.refused_name));
  m.set(metric::refused_messages_total, {"flood"}, double(refused.refused_flood));
  m.set(metric::refused_messages_total, {"excess"}, double(refused.refused_excess));
  m.set(metric::refused_messages_total, {"unknown_key"}, double(refused.refused_unknown_key));
  m.set(metric::refused_messages_total, {"replay"}, double(refused.refused_replay));
  publish_supplies(b, passed);
  bool const is_lost = at.is_parent_heard && !*at.is_parent_heard;
  std::string const why = is_lost ? "the parent does not answer" : "";
  services_.notify.status(why.empty() ? "listens at " + at.listens_at : why);
  m.publish(steady_ns(), why.empty(), why);
}

void figures::forget(supply_row const& supply, std::vector<class_row> const& classes) {
  runtime::metric_table& m = services_.metrics;
  std::string const target = supply.name.substr(supply.resource.size() + 1);
  verbs::remove_supply(m, supply.resource, target, supply.unit);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    std::string const& name = c == 0 ? "none" : classes[c].name;
    m.remove(in_unit(metric::class_granted_operations_per_second, supply.unit),
             {name, supply.resource, target});
    m.remove(in_unit(metric::class_served_operations_total, supply.unit),
             {name, supply.resource, target});
  }
}

void figures::publish_supplies(arbiter const& b, double passed) {
  runtime::metric_table& m = services_.metrics;
  policy_table const& p = b.policy();
  std::vector<class_sums> sums(p.classes.size());
  for (class_sums& c : sums) c.granted.resize(p.supplies.size()), c.served = c.granted;
  std::vector<rate> waiting(p.supplies.size());
  for (std::uint32_t j = 0; j < b.who().jobs.size(); ++j) {
    job const& who = b.who().jobs[j];
    if (!who.is_here()) continue;
    class_sums& c = sums[who.row];
    ++c.jobs;
    for (std::uint32_t s = 0; s < p.supplies.size(); ++s) {
      flow const& f = b.who().at(j, s);
      c.granted[s] += f.granted;
      c.served[s] += f.served;
      waiting[s] += f.waiting;
    }
  }
  for (std::uint32_t s = 0; s < p.supplies.size() && s < b.last().supplies.size(); ++s) {
    supply_row const& row = p.supplies[s];
    if (row.capacity == 0) continue;
    std::string const target = row.name.substr(row.resource.size() + 1);
    supply_state const& state = b.last().supplies[s];
    m.set(in_unit(metric::capacity_operations_per_second, row.unit), {row.resource, target},
          tokens(b.in_force(s)));
    if (auto const view = steered_view_of(b, s))
      verbs::publish_steered(m, row.resource, target, row.unit, *view);
    else
      verbs::remove_steered(m, row.resource, target, row.unit);
    if (auto const view = drift_view_of(b, s)) verbs::publish_drift(m, target, *view);
    m.set(in_unit(metric::granted_operations_per_second, row.unit), {row.resource, target},
          tokens(state.granted));
    m.set(in_unit(metric::demand_operations_per_second, row.unit), {row.resource, target},
          tokens(state.served));
    m.set(in_unit(metric::waiting_operations, row.unit), {row.resource, target},
          tokens(waiting[s]));
    m.add(in_unit(metric::served_operations_total, row.unit), {row.resource, target},
          tokens(state.served) * passed);
    for (std::size_t c = 0; c < sums.size(); ++c) {
      std::string const& name = c == 0 ? "none" : p.classes[c].name;
      if (c == 0 && sums[c].jobs == 0) continue;
      m.set(in_unit(metric::class_granted_operations_per_second, row.unit),
            {name, row.resource, target}, tokens(sums[c].granted[s]));
      m.add(in_unit(metric::class_served_operations_total, row.unit), {name, row.resource, target},
            tokens(sums[c].served[s]) * passed);
    }
  }
  for (std::string const& name : classes_shown_) m.remove(metric::jobs, {name});
  classes_shown_.clear();
  for (std::size_t c = 0; c < sums.size(); ++c) {
    if (c == 0 && sums[c].jobs == 0) continue;
    classes_shown_.push_back(c == 0 ? "none" : p.classes[c].name);
    m.set(metric::jobs, {classes_shown_.back()}, static_cast<double>(sums[c].jobs));
  }
}

void figures::remember(arbiter const& b, time_ns now) {
  if (services_.board == nullptr || now - remembered_at_ < spacing_ns) return;
  remembered_at_ = now;
  runtime::history& past = services_.board->past;
  policy_table const& p = b.policy();
  roster const& r = b.who();
  past.begin(now, static_cast<double>(unix_ns()) / 1e9);
  for (std::uint32_t j = 0; j < r.jobs.size(); ++j) {
    job const& who = r.jobs[j];
    if (who.key == 0 || who.name.empty()) continue;
    for (std::uint32_t s = 0; s < r.width(); ++s) {
      flow const& f = r.at(j, s);
      if (f.streams == 0 || p.supplies[s].capacity == 0) continue;
      runtime::history_look look = {who.name, p.classes[who.row].name, p.supplies[s].name, who.uid,
                                    p.supplies[s].unit};
      // Nodes report rates: the time since the last look makes them amounts.
      look.did.served = tokens(f.served) * past.passed_s();
      look.did.demand = f.blocked ? std::numeric_limits<float>::quiet_NaN()
                                  : static_cast<float>(tokens(f.served));
      look.did.grant = static_cast<float>(tokens(f.granted));
      look.did.waiting = static_cast<float>(tokens(f.waiting));
      look.did.blocked_s = f.blocked ? static_cast<float>(past.passed_s()) : 0;
      look.did.delayed = look.did.waited_s = std::numeric_limits<float>::quiet_NaN();
      if (f.deal.limit != unbounded) look.did.limit = static_cast<float>(f.deal.limit) / 1000;
      past.put(look);
    }
  }
  for (std::uint32_t s = 0; s < p.supplies.size(); ++s) {
    supply_row const& row = p.supplies[s];
    if (row.capacity == 0) continue;
    auto const view = steered_view_of(b, s);
    past.put_supply(row.name, row.unit, tokens(b.in_force(s)),
                    view ? verbs::steered_in_words(*view, row.unit) : "");
  }
  past.end();
}

}  // namespace sluice::cluster
