// SPDX-License-Identifier: Apache-2.0
// What a controller tells the log and Prometheus. Series of a class that is gone are taken away.
#include <algorithm>

#include "cluster/clock.h"
#include "cluster/controller.h"
#include "cluster/rows.h"
#include "policy/change.h"

namespace sluice::cluster {

namespace {

using control::in_unit;
using control::metric;

double tokens(rate r) { return static_cast<double>(r) / 1000; }

struct class_sums {
  std::size_t jobs = 0;
  std::vector<rate> granted, served;
};

}  // namespace

void controller::count_request(char const* verb, bool served) {
  services_.metrics.add(metric::local_requests_total, {verb, served ? "ok" : "refused"});
}

void controller::tell_notices() {
  for (notice const& n : brain_->take_notices()) {
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

void controller::publish(std::int64_t now) {
  control::metric_table& m = services_.metrics;
  brain const& b = *brain_;
  double const passed = published_at_ == 0 ? 0 : static_cast<double>(now - published_at_) / 1e9;
  published_at_ = now;
  m.set(metric::cycles_total, static_cast<double>(b.cycle()));
  m.set(metric::cycle_duration_seconds, static_cast<double>(settle_ns_) / 1e9);
  m.set(metric::policy_load_timestamp_seconds, static_cast<double>(policy_.loaded_s));
  if (is_relay()) m.set(metric::controller_connected, is_parent_heard() ? 1 : 0);
  double live = 0, silent = 0, gone = 0;
  for (child const& c : b.who().children) {
    if (c.name.empty()) continue;
    std::string_view const state = state_of(c, now);
    (state == "live" ? live : state == "silent" ? silent : gone) += 1;
  }
  m.set(metric::nodes, {"live"}, live);
  m.set(metric::nodes, {"silent"}, silent);
  m.set(metric::nodes, {"gone"}, gone);
  wire::peer_counts const& refused = below_->counts();
  m.set(metric::refused_messages_total, {"malformed"}, double(refused.refused_malformed));
  m.set(metric::refused_messages_total, {"role"}, double(refused.refused_role));
  m.set(metric::refused_messages_total, {"name"}, double(refused.refused_name));
  m.set(metric::refused_messages_total, {"flood"}, double(refused.refused_flood));
  m.set(metric::refused_messages_total, {"unknown_key"}, double(refused.refused_unknown_key));
  m.set(metric::refused_messages_total, {"replay"}, double(refused.refused_replay));
  publish_supplies(passed);
  std::string const why = is_relay() && !is_parent_heard() ? "the parent does not answer" : "";
  services_.notify.status(why.empty() ? "listens at " + listens_at() : why);
  m.publish(steady_ns(), why.empty(), why);
}

void controller::publish_supplies(double passed) {
  control::metric_table& m = services_.metrics;
  brain const& b = *brain_;
  plan const& p = b.policy();
  std::vector<class_sums> sums(p.classes.size());
  for (class_sums& c : sums) c.granted.resize(p.supplies.size()), c.served = c.granted;
  std::vector<rate> waiting(p.supplies.size());
  for (std::uint32_t j = 0; j < b.who().jobs.size(); ++j) {
    job const& who = b.who().jobs[j];
    if (who.key == 0) continue;
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
    m.set(in_unit(metric::capacity_operations_per_second, row.counts_bytes), {row.resource, target},
          tokens(row.capacity));
    m.set(in_unit(metric::granted_operations_per_second, row.counts_bytes), {row.resource, target},
          tokens(state.granted));
    m.set(in_unit(metric::demand_operations_per_second, row.counts_bytes), {row.resource, target},
          tokens(state.served));
    m.set(in_unit(metric::waiting_operations, row.counts_bytes), {row.resource, target},
          tokens(waiting[s]));
    m.add(in_unit(metric::served_operations_total, row.counts_bytes), {row.resource, target},
          tokens(state.served) * passed);
    for (std::size_t c = 0; c < sums.size(); ++c) {
      std::string const& name = c == 0 ? "none" : p.classes[c].name;
      if (c == 0 && sums[c].jobs == 0) continue;
      m.set(in_unit(metric::class_granted_operations_per_second, row.counts_bytes),
            {name, row.resource, target}, tokens(sums[c].granted[s]));
      m.add(in_unit(metric::class_served_operations_total, row.counts_bytes),
            {name, row.resource, target}, tokens(sums[c].served[s]) * passed);
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

}  // namespace sluice::cluster
