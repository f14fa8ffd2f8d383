// SPDX-License-Identifier: Apache-2.0
// What a node's jobs do, for Prometheus.
#include "node/accounts.h"
#include "policy/supply.h"
#include "runtime/metric_table.h"
#include "verbs/steered_metrics.h"

namespace sluice::node {

namespace {

using runtime::in_unit;
using runtime::metric;

}  // namespace

void accounts::publish_supplies(runtime::metric_table& m,
                                std::vector<supply_standing> const& standing,
                                steering const& steered) const {
  for (unsigned i = 0; i < site_.supplies().size(); ++i) {
    policy::supply const& of = site_.supplies()[i].of;
    if (of.capacity == 0 || !of.steered) verbs::remove_steered(m, of.resource, of.target, of.unit);
    if (of.capacity == 0) {  // the policy names it no more
      for (metric const gauge : {in_unit(metric::capacity_operations_per_second, of.unit),
                                 in_unit(metric::granted_operations_per_second, of.unit),
                                 in_unit(metric::demand_operations_per_second, of.unit),
                                 in_unit(metric::waiting_operations, of.unit)})
        m.remove(gauge, {of.resource, of.target});
      continue;
    }
    if (i >= standing.size()) continue;
    past_sums const past = i < before_.size() ? before_[i] : past_sums{};
    double served = 0, demand = 0, waiting = 0, delayed = 0, beyond = 0;
    for (auto const& j : jobs_.all())
      for (auto const& stream : j->streams) {
        if (stream.supply != i) continue;
        served += static_cast<double>(stream.counted.done().served);
        delayed += static_cast<double>(stream.counted.done().delayed);
        beyond += stream.counted.done().beyond;
        demand += tokens(stream.last.served);
        waiting += tokens(j->told_of(stream).waiting);
      }
    m.set(in_unit(metric::capacity_operations_per_second, of.unit), {of.resource, of.target},
          tokens(steered.in_force(i)));
    if (auto const view = steered.view(i))
      verbs::publish_steered(m, of.resource, of.target, of.unit, *view);
    if (auto const view = steered.drift(i)) verbs::publish_drift(m, of.target, *view);
    m.set(in_unit(metric::granted_operations_per_second, of.unit), {of.resource, of.target},
          tokens(standing[i].granted));
    m.set(in_unit(metric::demand_operations_per_second, of.unit), {of.resource, of.target}, demand);
    m.set(in_unit(metric::waiting_operations, of.unit), {of.resource, of.target}, waiting);
    m.set(in_unit(metric::served_operations_total, of.unit), {of.resource, of.target},
          past.served + served);
    m.set(in_unit(metric::unheld_operations_total, of.unit), {of.resource, of.target},
          past.beyond + beyond);
    m.set(metric::delayed_requests_total, {of.resource, of.target}, past.delayed + delayed);
  }
}

void accounts::publish_hints(runtime::metric_table& m) const {
  auto const of = [this](abi::hint what) {
    return static_cast<double>(hints_[static_cast<unsigned>(what)]);
  };
  m.set(metric::hints_total, {"advised"}, of(abi::hint::advised));
  m.set(metric::hints_total, {"cached"}, of(abi::hint::cached));
  m.set(metric::hints_total, {"unpaid"}, of(abi::hint::unpaid));
  m.set(metric::hinted_bytes_total, of(abi::hint::advised_bytes));
  auto const gathered = [this](abi::gather what) {
    return static_cast<double>(gathered_[static_cast<unsigned>(what)]);
  };
  m.set(metric::gathered_writes_total, gathered(abi::gather::writes));
  m.set(metric::gathered_bytes_total, gathered(abi::gather::bytes));
  m.set(metric::gathered_flushes_total, {"written"}, gathered(abi::gather::flushes));
  m.set(metric::gathered_flushes_total, {"failed"}, gathered(abi::gather::failures));
  auto const buffered = [this](abi::buffer what) {
    return static_cast<double>(buffered_[static_cast<unsigned>(what)]);
  };
  m.set(metric::buffered_reads_total, buffered(abi::buffer::reads));
  m.set(metric::buffered_bytes_total, buffered(abi::buffer::bytes));
  m.set(metric::buffer_fills_total, buffered(abi::buffer::fills));
}

void accounts::publish_jobs(runtime::metric_table& m) {
  std::map<std::string, double> by_class;
  for (auto const& c : site_.site().classes) by_class[c.name] = 0;
  double processes = 0, escaped = 0;
  for (auto const& j : jobs_.all()) {
    std::string const& qos_class = class_of(*j);
    by_class[qos_class.empty() ? "none" : qos_class] += 1;
    processes += j->processes;
    escaped += static_cast<double>(j->escapes.size());
  }
  std::erase_if(classes_shown_, [&](std::string const& name) {
    if (by_class.contains(name)) return false;
    m.remove(metric::jobs, {name});
    return true;
  });
  for (auto const& [name, count] : by_class) {
    m.set(metric::jobs, {name}, count);
    classes_shown_.insert(name);
  }
  for (auto const& c : site_.site().classes) {
    auto const found = by_class_.find(c.name);
    m.set(metric::class_waited_seconds_total, {c.name},
          found == by_class_.end() ? 0 : static_cast<double>(found->second.waited_ns) / 1e9);
  }
  m.set(metric::processes, processes);
  m.set(metric::escaped_processes, escaped);
}

void accounts::publish_streams(runtime::metric_table& m) const {
  if (!m.has_jobs()) return;
  for (auto const& j : jobs_.all()) {
    std::string const uid = std::to_string(j->record.uid);
    std::string const& qos_class = class_of(*j);
    for (auto const& stream : j->streams) {
      policy::supply const& of = site_.supplies()[stream.supply].of;
      runtime::labels const l = {j->record.name, uid, qos_class, of.resource, of.target};
      m.set(in_unit(metric::job_granted_operations_per_second, of.unit), l, tokens(stream.share));
      m.set(in_unit(metric::job_demand_operations_per_second, of.unit), l,
            tokens(stream.last.served));
      m.set(in_unit(metric::job_served_operations_total, of.unit), l,
            static_cast<double>(stream.counted.done().served));
    }
  }
}

void accounts::publish(runtime::metric_table& m, std::vector<supply_standing> const& standing,
                       steering const& steered, std::int64_t now_ns) {
  publish_supplies(m, standing, steered);
  publish_jobs(m);
  publish_streams(m);
  publish_hints(m);
  if (times_.is_due(now_ns)) {
    times_.begin(now_ns);
    loop_.figures.each(jobs_.all(), [&](job& j) { look_at_times(j); });
  }
  times_.publish(m);
  m.set(metric::cycles_total, static_cast<double>(cycles_));
}

}  // namespace sluice::node
