// SPDX-License-Identifier: Apache-2.0
#include "policy/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/units.h"
#include "policy/access.h"
#include "policy/background.h"
#include "policy/carried.h"
#include "policy/cost_file.h"
#include "policy/order.h"
#include "policy/small.h"
#include "policy/supply.h"

namespace sluice::policy {

namespace {

using lines = std::vector<std::string>;

supply const* find(std::vector<supply> const& in, supply const& like) {
  for (auto const& s : in)
    if (s.target == like.target && s.resource == like.resource) return &s;
  return nullptr;
}

qos_class const* find(site const& site, std::string const& name) {
  for (auto const& c : site.classes)
    if (c.name == name) return &c;
  return nullptr;
}

void compare_supplies(site const& from, site const& to, lines& out) {
  auto const old = supplies(from), now = supplies(to);
  for (auto const& s : now) {
    supply const* was = find(old, s);
    std::string const capacity = capacity_in_words(s);
    if (was == nullptr)
      out.push_back(fmt::format("{} is shared from now on: {}", s.name(), capacity));
    else if (auto const before = capacity_in_words(*was); before != capacity)
      out.push_back(fmt::format("capacity of {}: {} -> {}", s.name(), before, capacity));
  }
  for (auto const& s : old)
    if (find(now, s) == nullptr)
      out.push_back(fmt::format("{} is no longer shared: nobody is limited on it", s.name()));
}

/// What is done for the files of a target, beside limits.
std::string care_in_words(target_spec const& t) {
  std::vector<std::string> words;
  if (t.durable || t.ordered)
    words.push_back(
        fmt::format("order {}, by {}", t.ordered ? "ordered" : "durable", word_of(t.stream)));
  if (t.after) words.push_back(after_in_words(*t.after));
  for (small_word const& w : small_words)
    if (t.*w.sets) words.push_back(fmt::format("small {}", w.word));
  if (t.one_file_system) words.push_back("one file system");
  return words.empty() ? "nothing but limits" : fmt::format("{}", fmt::join(words, ", "));
}

target_spec const* find_target(site const& in, std::string const& name) {
  for (auto const& t : in.targets)
    if (t.name == name) return &t;
  return nullptr;
}

std::string vops_in_words(cost_file const* c) {
  if (c == nullptr) return "not known";
  auto const text = [](double per_s) {
    return bound_text(static_cast<std::uint64_t>(per_s * 1000), core::unit_kind::vops);
  };
  return fmt::format("{} at most, {} whatever meets", text(c->max_vops),
                     text(c->provisionable_vops));
}

/// What a VOP of the target is. Where and when it was measured does not matter.
void compare_costs(target_spec const& was, target_spec const& is, lines& out) {
  cost_file const *const a = was.costs.get(), *const b = is.costs.get();
  auto const before = vops_in_words(a), now = vops_in_words(b);
  if (before != now)
    out.push_back(fmt::format("costs of target {}: {} -> {}", is.name, before, now));
  if (a == nullptr || b == nullptr) return;
  cost_file of_requests = *b;
  of_requests.max_vops = a->max_vops;
  of_requests.provisionable_vops = a->provisionable_vops;
  if (carried_text(*a) != carried_text(of_requests))
    out.push_back(fmt::format("costs of target {}: requests cost other parts of it", is.name));
}

void compare_targets(site const& from, site const& to, lines& out) {
  for (auto const& t : to.targets) {
    target_spec const* const was = find_target(from, t.name);
    std::string const care = care_in_words(t);
    if (was == nullptr) {
      out.push_back(fmt::format("target {} is new, at {}: {}", t.name, t.path, care));
      continue;
    }
    if (was->path != t.path)
      out.push_back(
          fmt::format("target {} of new jobs: at {} -> at {}", t.name, was->path, t.path));
    if (auto const before = care_in_words(*was); before != care)
      out.push_back(fmt::format("target {} of new jobs: {} -> {}", t.name, before, care));
    compare_costs(*was, t, out);
  }
  for (auto const& t : from.targets)
    if (find_target(to, t.name) == nullptr)
      out.push_back(fmt::format("target {} is gone, for new jobs", t.name));
}

struct bounds {
  std::uint64_t reservation = 0, limit = no_bound;
  double weight = 1;
  std::uint32_t priority = 0;
};

bounds bounds_of(site const& site, std::string const& qos_class, supply const& s) {
  bounds b;
  auto const share = share_of(site, qos_class, s);
  if (!share) return b;
  b.weight = share->weight;
  b.priority = share->priority;
  if (share->reservation) b.reservation = milli_per_second(*share->reservation);
  if (share->limit) b.limit = milli_per_second(*share->limit);
  return b;
}

std::string background_word(site const& site, std::string const& qos_class, supply const& s) {
  auto const share = share_of(site, qos_class, s);
  if (!share || !share->background) return "not held back";
  return background_in_words(*share->background);
}

std::string promise_word(site const& site, std::string const& qos_class, supply const& s) {
  auto const share = share_of(site, qos_class, s);
  if (!share || !share->requests) return "none";
  return fmt::format("{}", fmt::join(requests_in_words(*share->requests), ", "));
}

/// What a job of the class has at most where nothing is shared, by resource and target.
std::map<std::string, std::string> ceilings_of(site const& in, std::string const& name,
                                               std::vector<supply> const& shared) {
  std::map<std::string, std::string> out;
  qos_class const* const c = find(in, name);
  if (c == nullptr) return out;
  for (auto const& [target, resources] : c->shares)
    for (auto const& [resource, share] : resources) {
      auto const is_its = [&of = target, &what = resource](supply const& s) {
        return s.target == of && s.resource == what;
      };
      bool const is_shared = std::any_of(shared.begin(), shared.end(), is_its);
      if (share.limit && !is_shared)
        out[resource + "@" + target] = rate_text(share.limit->unit, share.limit->rate_q40);
    }
  return out;
}

void compare_ceilings(site const& from, site const& to, std::string const& name, lines& out) {
  auto const shared = supplies(to);
  auto was = ceilings_of(from, name, shared), is = ceilings_of(to, name, shared);
  for (auto const& [at, text] : was) is.try_emplace(at, "unlimited");
  for (auto const& [at, text] : is) {
    auto const before = was.try_emplace(at, "unlimited").first->second;
    if (before != text)
      out.push_back(fmt::format("limit of class {} on {}: {} -> {}", name, at, before, text));
  }
}

void compare_class(site const& from, site const& to, std::string const& name, lines& out) {
  for (auto const& s : supplies(to)) {
    bounds const a = bounds_of(from, name, s), b = bounds_of(to, name, s);
    auto const say = [&](char const* what, std::string const& was, std::string const& is) {
      if (was != is)
        out.push_back(fmt::format("{} of class {} on {}: {} -> {}", what, name, s.name(), was, is));
    };
    say("reservation", bound_text(a.reservation, s.unit), bound_text(b.reservation, s.unit));
    say("weight", fmt::format("{}", a.weight), fmt::format("{}", b.weight));
    say("priority", fmt::format("{}", a.priority), fmt::format("{}", b.priority));
    say("requests promised by", promise_word(from, name, s), promise_word(to, name, s));
    say("limit", bound_text(a.limit, s.unit), bound_text(b.limit, s.unit));
    say("background work", background_word(from, name, s), background_word(to, name, s));
  }
  compare_ceilings(from, to, name, out);
}

std::string people_word(site const& site, std::string const& qos_class) {
  auto const rule = site.access.find(qos_class);
  return rule == site.access.end() ? "everybody" : people_in_words(rule->second);
}

void compare_access(site const& from, site const& to, lines& out) {
  for (auto const& c : to.classes) {
    auto const was = people_word(from, c.name), is = people_word(to, c.name);
    if (was == is) continue;
    if (find(from, c.name) == nullptr)
      out.push_back(fmt::format("class {} may be used by {}", c.name, is));
    else
      out.push_back(fmt::format("class {} may be used by: {} -> {}", c.name, was, is));
  }
}

/// Sentences that begin with their keys, and a colon or a comma.
using sentences = std::map<std::string, std::string>;

void compare_sentences(sentences const& from, sentences const& to, lines& out) {
  for (auto const& [name, is] : to) {
    auto const was = from.find(name);
    if (was == from.end())
      out.push_back("new " + is);
    else if (was->second != is)
      out.push_back(fmt::format("{} -> {}", was->second, is.substr(name.size() + 2)));
  }
  for (auto const& [name, was] : from)
    if (!to.contains(name)) out.push_back(name + " is gone");
}

sentences channels_in(site const& s) {
  sentences out;
  for (auto const& c : s.channels) out["channel " + c.name] = channel_in_words(c);
  return out;
}

sentences requests_in(site const& s) {
  sentences out;
  for (auto const& r : s.requests) out["request " + r.name] = request_in_words(r);
  return out;
}

sentences roles_in(site const& s) {
  sentences out;
  constexpr std::uint64_t any =
      core::ops_of_selector("all") | core::class_mask(core::call_class::local);
  auto const words = roles_in_words(s.roles);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string calls;
    for (auto const& clause : s.roles[i].clauses)
      if ((clause.ops & any) != any) calls += "; for " + ops_in_words(clause.ops);
    out["role " + s.roles[i].full_name()] = words[i] + calls;
  }
  return out;
}

void compare_classes(site const& from, site const& to, lines& out) {
  for (auto const& c : to.classes) {
    if (find(from, c.name) == nullptr) out.push_back(fmt::format("class {} is new", c.name));
    compare_class(from, to, c.name, out);
  }
  for (auto const& c : from.classes)
    if (find(to, c.name) == nullptr)
      out.push_back(fmt::format("class {} is gone: its jobs have {}", c.name,
                                to.control.default_class.empty()
                                    ? "weight 1, no reservation and no limit"
                                    : "the default class " + to.control.default_class));
}

void compare_control(site const& from, site const& to, lines& out) {
  control_settings const &a = from.control, &b = to.control;
  if (from.algorithm != to.algorithm)
    out.push_back(fmt::format("algorithm: {} -> {}", from.algorithm, to.algorithm));
  if (a.enforce != b.enforce)
    out.push_back(b.enforce ? "limits are enforced from now on"
                            : "nothing is delayed any more, only counted (enforce: false)");
  if (a.default_class != b.default_class)
    out.push_back(fmt::format("default class: {} -> {}",
                              a.default_class.empty() ? "none" : a.default_class,
                              b.default_class.empty() ? "none" : b.default_class));
  if (a.orphans != b.orphans)
    out.push_back(
        fmt::format("a node without a parent: {} -> {}", name_of(a.orphans), name_of(b.orphans)));
  if (a.nodes.size() != b.nodes.size() ||
      std::set(a.nodes.begin(), a.nodes.end()) != std::set(b.nodes.begin(), b.nodes.end()))
    out.push_back(fmt::format("configured nodes: {} -> {}", a.nodes.size(), b.nodes.size()));
  if (a.escrow_ppm != b.escrow_ppm || a.floor_ppm != b.floor_ppm)
    out.push_back(fmt::format("escrow and floor of all nodes: {}% and {}% -> {}% and {}%",
                              a.escrow_ppm / 1e4, a.floor_ppm / 1e4, b.escrow_ppm / 1e4,
                              b.floor_ppm / 1e4));
}

}  // namespace

std::string ops_in_words(std::uint64_t ops) {
  if (ops == core::ops_of_selector("all")) return "every call";
  std::string out;
  for (unsigned i = 0; i < core::op_count; ++i)
    if ((ops >> i & 1) != 0) out += (out.empty() ? "" : ", ") + std::string(core::op_table[i].name);
  return out;
}

std::string channel_in_words(channel_spec const& c) {
  std::string line = fmt::format("channel {}: {} at most {}", c.name, ops_in_words(c.ops),
                                 rate_text(c.amount.unit, c.amount.rate_q40));
  line += c.target.empty() ? ", everywhere" : ", on " + c.target;
  if (!c.path_glob.empty()) line += ", files like " + c.path_glob;
  if (!c.thread_glob.empty()) line += ", threads named " + c.thread_glob;
  if (!c.role.empty()) line += ", role " + c.role;
  if (c.user != core::any_user) line += fmt::format(", uid {}", c.user);
  return line;
}

std::string capacity_in_words(supply const& s) {
  if (!s.steered) return bound_text(s.capacity, s.unit);
  std::string const steered =
      fmt::format("steered from {} to {} so that {}", bound_text(s.lowest, s.unit),
                  bound_text(s.capacity, s.unit), latency_in_words(*s.steered));
  if (!s.steered->is_shadow) return steered;
  return fmt::format("{}, and only told what it were {}", bound_text(s.capacity, s.unit), steered);
}

lines changes(site const& from, site const& to) {
  lines out;
  compare_targets(from, to, out);
  compare_supplies(from, to, out);
  compare_classes(from, to, out);
  compare_access(from, to, out);
  compare_sentences(channels_in(from), channels_in(to), out);
  compare_sentences(roles_in(from), roles_in(to), out);
  compare_sentences(requests_in(from), requests_in(to), out);
  compare_control(from, to, out);
  for (std::string const& s : needs_restart(from, to)) out.push_back(s);
  return out;
}

lines changes(site const& from, std::string const& from_text, site const& to,
              std::string const& to_text) {
  lines out = changes(from, to);
  if (!out.empty() || from_text == to_text) return out;
  auto const tree = [](std::string const& text) {
    return text.empty() ? nlohmann::json::object() : nlohmann::json::parse(text, nullptr, false);
  };
  if (auto const was = tree(from_text); !was.is_discarded() && was == tree(to_text))
    return {"the text differs, and nothing of what is in force"};
  return {"something else differs: compare it with what `sluice policy get` prints"};
}

lines needs_restart(site const& from, site const& to) {
  control_settings const &a = from.control, &b = to.control;
  lines out;
  auto const say = [&](char const* what, std::string const& was, std::string const& is) {
    if (was != is)
      out.push_back(fmt::format("{}: {} -> {}, when the controllers are restarted", what, was, is));
  };
  say("cycle", fmt::format("{}ms", a.cycle_ns / 1'000'000),
      fmt::format("{}ms", b.cycle_ns / 1'000'000));
  say("lease", fmt::format("{}ms", a.lease_ns / 1'000'000),
      fmt::format("{}ms", b.lease_ns / 1'000'000));
  say("pool owner", name_of(a.pool), name_of(b.pool));
  return out;
}

}  // namespace sluice::policy
