// SPDX-License-Identifier: Apache-2.0
// The figures of a node for Prometheus, and its health.
#include "node/rows.h"
#include "node/state.h"

namespace sluice::node {

namespace {

using control::in_unit;
using control::metric;

bool is_bytes(policy::supply const& of) { return of.unit == unit_kind::bytes; }

void publish_supplies(state const& s, control::metric_table& m) {
  for (unsigned i = 0; i < s.site.supplies().size(); ++i) {
    policy::supply const& of = s.site.supplies()[i].of;
    if (of.capacity == 0) {  // the policy names it no more
      for (metric const gauge : {in_unit(metric::capacity_operations_per_second, is_bytes(of)),
                                 in_unit(metric::granted_operations_per_second, is_bytes(of)),
                                 in_unit(metric::demand_operations_per_second, is_bytes(of)),
                                 in_unit(metric::waiting_operations, is_bytes(of))})
        m.remove(gauge, {of.resource, of.target});
      continue;
    }
    if (i >= s.rates.standing().size()) continue;
    double served = 0, demand = 0, waiting = 0, delayed = 0;
    for (auto const& j : s.jobs.all())
      for (auto const& stream : j->streams) {
        if (stream.supply != i) continue;
        served += static_cast<double>(stream.counted.done().served);
        delayed += static_cast<double>(stream.counted.done().delayed);
        demand += tokens(stream.last.served);
        waiting += tokens(stream.last.waiting);
      }
    m.set(in_unit(metric::capacity_operations_per_second, is_bytes(of)), {of.resource, of.target},
          tokens(of.capacity));
    m.set(in_unit(metric::granted_operations_per_second, is_bytes(of)), {of.resource, of.target},
          tokens(s.rates.standing()[i].granted));
    m.set(in_unit(metric::demand_operations_per_second, is_bytes(of)), {of.resource, of.target},
          demand);
    m.set(in_unit(metric::waiting_operations, is_bytes(of)), {of.resource, of.target}, waiting);
    m.set(in_unit(metric::served_operations_total, is_bytes(of)), {of.resource, of.target},
          s.before(i).served + served);
    m.set(metric::delayed_requests_total, {of.resource, of.target}, s.before(i).delayed + delayed);
  }
}

/// `shown`: the classes that had a gauge, and have one now.
void publish_jobs(state const& s, control::metric_table& m, std::set<std::string>& shown) {
  std::map<std::string, double> by_class;
  for (auto const& c : s.site.site().classes) by_class[c.name] = 0;
  double processes = 0, escaped = 0;
  for (auto const& j : s.jobs.all()) {
    std::string const& qos_class = class_in_force(*j, s.overrides.find(j->folder));
    by_class[qos_class.empty() ? "none" : qos_class] += 1;
    processes += j->processes;
    escaped += static_cast<double>(j->escapes.size());
  }
  std::erase_if(shown, [&](std::string const& name) {
    if (by_class.contains(name)) return false;
    m.remove(metric::jobs, {name});
    return true;
  });
  for (auto const& [name, count] : by_class) {
    m.set(metric::jobs, {name}, count);
    shown.insert(name);
  }
  for (auto const& c : s.site.site().classes) {
    auto const found = s.by_class.find(c.name);
    m.set(metric::class_waited_seconds_total, {c.name},
          found == s.by_class.end() ? 0 : static_cast<double>(found->second.waited_ns) / 1e9);
  }
  m.set(metric::processes, processes);
  m.set(metric::escaped_processes, escaped);
}

void publish_streams(state const& s, control::metric_table& m) {
  if (!m.has_jobs()) return;
  for (auto const& j : s.jobs.all()) {
    std::string const uid = std::to_string(j->record.uid);
    std::string const& qos_class = class_in_force(*j, s.overrides.find(j->folder));
    for (auto const& stream : j->streams) {
      policy::supply const& of = s.site.supplies()[stream.supply].of;
      control::labels const l = {j->record.name, uid, qos_class, of.resource, of.target};
      m.set(in_unit(metric::job_granted_operations_per_second, is_bytes(of)), l,
            tokens(stream.share));
      m.set(in_unit(metric::job_demand_operations_per_second, is_bytes(of)), l,
            tokens(stream.last.served));
      m.set(in_unit(metric::job_served_operations_total, is_bytes(of)), l,
            static_cast<double>(stream.counted.done().served));
    }
  }
}

}  // namespace

void state::publish(moment at) {
  control::metric_table& m = services.metrics;
  bool const silent = has_parent() && (!up->is_welcome() || lease.is_silent(at.boot_ns));
  publish_supplies(*this, m);
  publish_jobs(*this, m, classes_shown_);
  publish_streams(*this, m);
  log.publish(m, at.mono_ns);
  m.set(control::metric::cycles_total, static_cast<double>(cycle));
  if (has_parent()) m.set(control::metric::controller_connected, silent ? 0 : 1);
  m.publish(at.mono_ns, !silent, silent ? "the parent does not answer" : "");
}

}  // namespace sluice::node
