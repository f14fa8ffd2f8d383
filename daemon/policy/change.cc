// SPDX-License-Identifier: Apache-2.0
#include "policy/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/units.h"
#include "policy/background.h"
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
  }
  for (auto const& t : from.targets)
    if (find_target(to, t.name) == nullptr)
      out.push_back(fmt::format("target {} is gone, for new jobs", t.name));
}

struct bounds {
  std::uint64_t reservation = 0, limit = no_bound;
  double weight = 1;
};

bounds bounds_of(site const& site, std::string const& qos_class, supply const& s) {
  bounds b;
  auto const share = share_of(site, qos_class, s);
  if (!share) return b;
  b.weight = share->weight;
  if (share->reservation) b.reservation = milli_per_second(*share->reservation);
  if (share->limit) b.limit = milli_per_second(*share->limit);
  return b;
}

std::string background_word(site const& site, std::string const& qos_class, supply const& s) {
  auto const share = share_of(site, qos_class, s);
  if (!share || !share->background) return "not held back";
  return background_in_words(*share->background);
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
    say("limit", bound_text(a.limit, s.unit), bound_text(b.limit, s.unit));
    say("background work", background_word(from, name, s), background_word(to, name, s));
  }
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
  compare_control(from, to, out);
  for (std::string const& s : needs_restart(from, to)) out.push_back(s);
  return out;
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
