// SPDX-License-Identifier: Apache-2.0
#include "commands/replay/simulate/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sluice::simulation {

namespace {

/// A trace says how often and how much, not in requests of which size: it has no price in VOPs.
std::uint32_t supply_of(cluster::policy_table const& p, std::string const& target, unsigned op) {
  auto const mask = std::uint64_t{1} << static_cast<unsigned>(trace::op_table[op].as);
  for (std::uint32_t s = 0; s < p.supplies.size(); ++s)
    if (p.supplies[s].name == p.supplies[s].resource + "@" + target &&
        p.supplies[s].unit != core::unit_kind::vops &&
        (core::ops_of_selector(p.supplies[s].resource) & mask) != 0)
      return s;
  return no_supply;
}

std::uint32_t row_of_class(cluster::policy_table const& p, std::string const& name) {
  std::vector<std::string> known;
  for (std::uint32_t i = 1; i < p.classes.size(); ++i) {
    if (p.classes[i].name == name) return i;
    known.push_back(p.classes[i].name);
  }
  std::string const advice =
      known.empty() ? "" : fmt::format("; it has {}", fmt::join(known, ", "));
  throw usage_error(fmt::format("--class: the policy has no class \"{}\"{}", name, advice));
}

void set_class(cluster::policy_table const& p, job_load& j, std::string const& name) {
  j.row = row_of_class(p, name);
  j.qos_class = name;
}

void set_classes(cluster::policy_table const& p, load& l, std::vector<std::string> const& wanted) {
  std::vector<bool> named(l.jobs.size());
  for (std::string const& text : wanted) {
    std::size_t const equals = text.rfind('=');
    if (equals == std::string::npos) continue;
    bool found = false;
    for (std::size_t j = 0; j < l.jobs.size(); ++j) {
      if (l.jobs[j].name != text.substr(0, equals)) continue;
      set_class(p, l.jobs[j], text.substr(equals + 1));
      named[j] = found = true;
    }
    if (found) continue;
    std::vector<std::string> names;
    for (auto const& j : l.jobs) names.push_back(j.name);
    throw usage_error(fmt::format("--class: the trace has no job \"{}\"; it has {}",
                                  text.substr(0, equals), fmt::join(names, ", ")));
  }
  bool const is_any_left = std::find(named.begin(), named.end(), false) != named.end();
  for (std::string const& text : wanted) {
    if (text.find('=') != std::string::npos) continue;
    row_of_class(p, text);  // or it is refused, whoever has it
    if (!is_any_left) l.idle_class = text;
    for (std::size_t j = 0; j < l.jobs.size(); ++j)
      if (!named[j]) set_class(p, l.jobs[j], text);
  }
}

std::vector<job_load> jobs_of(trace::trace const& t) {
  std::vector<job_load> jobs;
  for (std::string const& name : t.jobs()) {
    job_load j;
    j.name = name.empty() ? "job1" : name;
    for (std::uint32_t c = 0; c < t.columns.size(); ++c)
      if (t.columns[c].job == name) j.ops.push_back({c, no_supply});
    jobs.push_back(std::move(j));
  }
  return jobs;
}

void add_amounts(trace::trace const& t, job_load& j) {
  j.first = t.counts.size();
  for (std::size_t i = 0; i < t.counts.size(); ++i)
    for (op_column const& o : j.ops) {
      double const amount = t.counts[i][o.column];
      if (amount <= 0) continue;
      j.first = std::min(j.first, i);
      j.end = i + 1;
      if (o.supply == no_supply) continue;
      std::vector<double>& row = j.offered[o.supply];
      row.resize(t.counts.size());
      row[i] += amount;
    }
}

}  // namespace

load make_load(trace::trace const& t, cluster::policy_table const& p, std::string const& target,
               std::vector<std::string> const& classes) {
  load l;
  l.interval_s = t.interval_s;
  l.intervals = t.counts.size();
  l.jobs = jobs_of(t);
  for (job_load& j : l.jobs) {
    j.row = p.default_class;
    j.qos_class = p.classes[j.row].name;
    j.offered.resize(p.supplies.size());
    for (op_column& o : j.ops) o.supply = supply_of(p, target, t.columns[o.column].op);
    add_amounts(t, j);
  }
  set_classes(p, l, classes);
  std::erase_if(l.jobs, [](job_load const& j) { return j.end == 0; });
  if (l.jobs.empty()) throw usage_error("the trace has no operations: every count is 0");
  return l;
}

}  // namespace sluice::simulation
