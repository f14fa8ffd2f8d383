// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/on_stderr.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "commands/replay/simulate/result.h"
#include "commands/replay/simulate/whatif.h"
#include "policy/policy.h"
#include "policy/supply.h"

namespace sluice::simulation {

namespace {

constexpr std::size_t longest = 20;  // times the trace, until a queue has to be empty

bool is_below(std::string const& path, std::string tree) {
  if (tree.empty()) return false;
  while (tree.size() > 1 && tree.back() == '/') tree.pop_back();
  return path == tree || tree == "/" || path.rfind(tree + "/", 0) == 0;
}

std::string choose_target(policy::site const& site, options const& o) {
  std::vector<std::string> names;  // in the order of the policy
  for (auto const& t : site.targets)
    if (site.capacity.contains(t.name)) names.push_back(t.name);
  auto const has_capacity = [&](std::string const& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (names.empty())
    throw usage_error(o.policy_file + ": no target has a capacity: there is nothing to divide");
  std::string const all = fmt::format("{}", fmt::join(names, ", "));
  if (o.target.empty()) {
    if (names.size() > 1)
      on_stderr(
          "sluice: the load is put on target {}, the first of {} with a capacity ({}); "
          "--target NAME chooses another\n",
          names.front(), o.policy_file, all);
    return names.front();
  }
  if (has_capacity(o.target)) return o.target;
  std::string best, best_path;
  for (auto const& t : site.targets)
    if (has_capacity(t.name) && is_below(o.target, t.path) && t.path.size() >= best_path.size()) {
      best = t.name;
      best_path = t.path;
    }
  if (best.empty())
    throw usage_error(fmt::format("--target {}: no target of {} has that name or path; it has {}",
                                  o.target, o.policy_file, all));
  return best;
}

void save(nlohmann::json const& result, std::string const& path) {
  output_file to(path);
  to.stream() << result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  to.commit();
}

}  // namespace

int run(options const& o) {
  std::string const text = policy::read_policy_text(o.policy_file);
  policy::site const site = policy::parse_policy(text, o.policy_file);
  cluster::policy_table const plan = cluster::policy_table_of(site, text);
  std::string const target = choose_target(site, o);
  std::optional<trace::trace> read;
  if (!o.load) read = trace::read(o.trace_file);
  trace::trace const& t = o.load ? *o.load : *read;
  load const jobs = make_load(t, plan, target, o.classes);
  if (!jobs.idle_class.empty())
    on_stderr("sluice: --class {}: no job has it: each has a class of its own\n", jobs.idle_class);
  auto const began = std::chrono::steady_clock::now();
  past const p = simulate(jobs, plan, jobs.intervals * longest);
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
  scene const s{t, site, plan, jobs, o.policy_file, o.trace_file, target, took.count()};
  if (!site.channels.empty())
    on_stderr("sluice: {}: channels are not simulated, only shares of a capacity\n", o.policy_file);
  for (auto const& of : policy::supplies(site))
    if (of.unit == core::unit_kind::vops)
      on_stderr(
          "sluice: {}: {} is not simulated: a trace does not say what its requests "
          "cost in VOPs\n",
          o.policy_file, of.name());
  if (!o.output.empty()) save(result_of(s, p), o.output);
  if (o.json)
    save(result_of(s, p), "-");
  else if (!o.quiet && o.output != "-")
    fmt::print("{}", without_commands(table_of(s, p)));
  return 0;
}

}  // namespace sluice::simulation
