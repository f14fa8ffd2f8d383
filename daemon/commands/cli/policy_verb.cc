// SPDX-License-Identifier: Apache-2.0
// sluice policy check and show: a policy in words, and with its units resolved.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/on_stderr.h"
#include "base/printable.h"
#include "base/quantity.h"
#include "commands/cli/limits.h"
#include "commands/cli/options.h"
#include "commands/cli/report.h"
#include "policy/background.h"
#include "policy/change.h"
#include "policy/class_limits.h"
#include "policy/control.h"
#include "policy/cost_file.h"
#include "policy/doubts.h"
#include "policy/mount_table.h"
#include "policy/order.h"
#include "policy/policy.h"
#include "policy/small.h"
#include "policy/supply.h"

namespace sluice::cli {

namespace {

using policy::site;

std::string text_of(policy::rate const& r) { return policy::rate_text(r.unit, r.rate_q40); }

double number_of(policy::rate const& r) { return policy::per_second(r.unit, r.rate_q40); }

std::string share_in_words(policy::share const& s) {
  std::string out = fmt::format("weight {:g}", s.weight);
  if (s.requests)
    out +=
        fmt::format(", promised {}: {} {}", fmt::join(policy::requests_in_words(*s.requests), ", "),
                    s.requests->has_most ? "at most" : "at first", text_of(*s.reservation));
  else if (s.reservation)
    out += ", at least " + text_of(*s.reservation);
  if (s.limit) out += ", at most " + text_of(*s.limit);
  if (s.priority != 0) out += fmt::format(", priority {}", s.priority);
  if (s.background) out += "; " + policy::background_in_words(*s.background);
  return out;
}

/// What a target covers beside its own file system, or leaves out. Of this machine, now.
std::string mounts_in_words(policy::target_spec const& t) {
  std::string list;
  try {
    auto const below = policy::mounts_below(read_mounts(), policy::find_place(t.path));
    for (auto const& m : below)
      list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", m.point, m.type);
  } catch (error const&) {
    return {};  // it is not on this machine, which is said already
  }
  if (list.empty() && !t.one_file_system) return {};
  if (list.empty()) return fmt::format("{} is one file system", t.name);
  return fmt::format("{} {} the mounts below it: {}", t.name,
                     t.one_file_system ? "leaves out" : "covers", list);
}

/// What a VOP of a target is, and how many there are.
std::string costs_in_words(policy::target_spec const& t) {
  policy::cost_file const& c = *t.costs;
  auto const text = [](double per_s) { return rate_words(per_s, core::unit_kind::vops); };
  std::string out = fmt::format(
      "on {} a small random request costs about 1 VOP: it gives {} at most, {} whatever meets",
      t.name, text(c.max_vops), text(c.provisionable_vops));
  if (c.from.is_known()) out += fmt::format(" (measured on {}, {})", c.from.source, c.from.time);
  return out;
}

json words(std::string const& file, site const& s) {
  json lines = json::array();
  for (auto const& t : s.targets) {
    std::string line = fmt::format("target {} is {}", t.name, t.path);
    for (auto const& of : policy::supplies(s))
      if (of.target == t.name)
        line += fmt::format(", {} {}", of.resource, policy::capacity_in_words(of));
    std::error_code failed;
    if (!std::filesystem::is_directory(t.path, failed)) line += " (not on this machine)";
    lines.push_back(line);
    if (t.costs != nullptr) lines.push_back(costs_in_words(t));
    if (auto const mounts = mounts_in_words(t); !mounts.empty()) lines.push_back(mounts);
    if (t.durable)
      lines.push_back(fmt::format("on {} fsync {}, in streams by {}", t.name,
                                  t.ordered ? "is a barrier" : "waits for the journal",
                                  policy::word_of(t.stream)));
    if (t.after) lines.push_back(fmt::format("on {} {}", t.name, policy::after_in_words(*t.after)));
    for (policy::small_word const& w : policy::small_words)
      if (t.*w.sets) lines.push_back(fmt::format("on {} {}", t.name, w.means));
  }
  for (auto const& c : s.classes)
    for (auto const& [target, resources] : c.shares)
      for (auto const& [resource, share] : resources)
        lines.push_back(
            fmt::format("class {}, {} on {}: {}", c.name, resource, target, share_in_words(share)));
  for (auto& line : policy::roles_in_words(s.roles)) lines.push_back(std::move(line));
  for (auto const& r : s.requests) lines.push_back(policy::request_in_words(r));
  for (auto const& c : s.channels) lines.push_back(policy::channel_in_words(c));
  lines.push_back(fmt::format("capacity is shared by {}", s.algorithm));
  if (!s.capacity.empty())
    for (auto const& line : policy::control_in_words(s)) lines.push_back(line);
  return {{"file", file}, {"valid", true}, {"meaning", lines}};
}

json background_json(policy::background_terms const& t) {
  return {{"algorithm", policy::background_rows[t.algorithm].name},
          {"total_per_s", double(t.total) / 1000},
          {"foreground_per_s", double(t.foreground) / 1000},
          {"floor_per_s", double(t.floor) / 1000},
          {"channels", t.channels}};
}

json requests_json(policy::request_terms const& t) {
  json out = json::object();
  for (auto const& p : t.promised) out[p.what.name] = p.per_s;
  return out;
}

json share_json(policy::share const& s) {
  json out = {{"weight", s.weight}};
  if (s.reservation) out["reservation_per_s"] = number_of(*s.reservation);
  if (s.limit) out["limit_per_s"] = number_of(*s.limit);
  if (s.priority != 0) out["priority"] = s.priority;
  if (s.background) out["background"] = background_json(*s.background);
  if (s.requests) out["requests_per_s"] = requests_json(*s.requests);
  return out;
}

json control_json(policy::control_settings const& c) {
  return {{"nodes", c.nodes},
          {"cycle_s", double(c.cycle_ns) / 1e9},
          {"lease_s", double(c.lease_ns) / 1e9},
          {"escrow", c.escrow_ppm / 1e6},
          {"floor", c.floor_ppm / 1e6},
          {"pool_owner", policy::name_of(c.pool)},
          {"orphans", policy::name_of(c.orphans)},
          {"default_class", c.default_class.empty() ? json(nullptr) : json(c.default_class)},
          {"enforce", c.enforce}};
}

}  // namespace

int policy_check(global_options const& global, std::string const& file) {
  site const s = policy::read_policy(file);
  policy::check_classes(s, file, policy::as_found());
  json result = words(file, s);
  auto warnings = policy::warnings(s);
  for (auto& line : policy::cluster_warnings(s)) warnings.push_back(std::move(line));
  for (auto& line : policy::doubts_of_granted(s)) warnings.push_back(std::move(line));
  for (auto& line : policy::doubts({s.targets, s.channels}, policy::this_machine()))
    warnings.push_back(std::move(line));
  if (global.json) {
    result["warnings"] = warnings;
    fmt::print("{}", dump(result));
    return 0;
  }
  for (auto const& line : result["meaning"]) fmt::print("{}\n", one_line(line.get<std::string>()));
  for (auto const& warning : warnings)
    on_stderr("sluice: {}: warning: {}\n", file, one_line(warning));
  return 0;
}

int policy_show(global_options const&, std::string const& file) {
  site const s = policy::read_policy(file);
  json out = {
      {"targets", json::object()}, {"classes", json::object()}, {"channels", json::array()}};
  for (auto const& t : s.targets) {
    out["targets"][t.name] = {{"path", t.path}, {"one_file_system", t.one_file_system}};
    if (t.costs != nullptr)
      out["targets"][t.name]["cost"] = {{"max_vops", t.costs->max_vops},
                                        {"provisionable_vops", t.costs->provisionable_vops}};
    if (t.durable)
      out["targets"][t.name].update(
          {{"order", t.ordered ? "ordered" : "durable"}, {"stream", policy::word_of(t.stream)}});
    for (policy::small_word const& w : policy::small_words)
      if (t.*w.sets) out["targets"][t.name]["small"] = w.word;
    if (t.after)
      out["targets"][t.name]["after"] = {{"write", t.after->write},
                                         {"durable", t.after->durable},
                                         {"patience_s", double(t.after->patience_ns) / 1e9}};
    if (auto const c = s.capacity.find(t.name); c != s.capacity.end())
      for (auto const& [resource, r] : c->second)
        out["targets"][t.name]["capacity_per_s"][resource] = number_of(r);
  }
  for (auto const& c : s.classes) {
    out["classes"][c.name] = json::object();
    for (auto const& [target, resources] : c.shares)
      for (auto const& [resource, share] : resources)
        out["classes"][c.name][target][resource] = share_json(share);
  }
  for (auto const& c : s.channels)
    out["channels"].push_back(
        {{"name", c.name},
         {"ops", policy::ops_in_words(c.ops)},
         {"unit", core::row_of(c.amount.unit).name},
         {"limit_per_s", number_of(c.amount)},
         {"target", c.target.empty() ? json(nullptr) : json(c.target)},
         {"path", c.path_glob.empty() ? json(nullptr) : json(c.path_glob)},
         {"thread", c.thread_glob.empty() ? json(nullptr) : json(c.thread_glob)},
         {"role", c.role.empty() ? json(nullptr) : json(c.role)},
         {"uid", c.user == core::any_user ? json(nullptr) : json(c.user)}});
  for (auto const& role : s.roles)
    out["roles"].push_back({{"role", role.full_name()}, {"sets", role.clauses.size()}});
  for (auto const& [name, rule] : s.access)
    out["access"][name] = {{"users", rule.users}, {"groups", rule.groups}};
  out["control"] = control_json(s.control);
  out["algorithm"] = s.algorithm;
  fmt::print("{}", dump(out));
  return 0;
}

}  // namespace sluice::cli
