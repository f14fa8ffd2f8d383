// SPDX-License-Identifier: Apache-2.0
#include "policy/background_terms.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "policy/resource.h"
#include "policy/site.h"
#include "policy/supply.h"

namespace sluice::policy {

namespace {

constexpr std::uint64_t usual_floor_part = 20;  // of the total

share const* share_named(qos_class const& c, std::string const& target,
                         std::string const& resource) {
  auto const t = c.shares.find(target);
  if (t == c.shares.end()) return nullptr;
  auto const r = t->second.find(resource);
  return r == t->second.end() ? nullptr : &r->second;
}

/// What the job may have: its limit, or all there is.
std::uint64_t background_total(site const& s, std::string const& target,
                               std::string const& resource, share const& of) {
  if (of.limit) return milli_per_second(*of.limit);
  auto const c = s.capacity.find(target);
  auto const steered = s.steered.find(target);
  bool const moves = steered != s.steered.end() && steered->second.contains(resource);
  if (c == s.capacity.end() || !c->second.contains(resource) || moves)
    throw usage_error(
        fmt::format("{}: what there is for {} on {} is not known: write a \"limit\" here, or a "
                    "capacity of the target{}",
                    of.origin, resource, target, moves ? " that does not move" : ""));
  return milli_per_second(c->second.at(resource));
}

channel_spec background_channel(std::string name, std::string const& target,
                                std::string const& resource, std::string const& origin) {
  channel_spec c;
  c.name = std::move(name);
  c.origin = origin;
  c.ops = core::ops_of_selector(resource);
  c.amount.unit = unit_of_supply(resource);
  c.amount.rate_q40 = rate_q40_of(unlimited(c.amount.unit), c.amount.unit);
  c.target = target;
  return c;
}

}  // namespace

background_terms background_of(site const& s, std::string const& target,
                               std::string const& resource, share const& of) {
  background_spec const& b = *of.background;
  background_terms t;
  t.supply = resource + "@" + target;
  t.algorithm = b.algorithm;
  t.total = background_total(s, target, resource, of);
  t.floor = b.floor ? milli_per_second(*b.floor) : t.total / usual_floor_part;
  auto const text = [](std::uint64_t milli) { return bound_text(milli, core::unit_kind::bytes); };
  if (t.floor >= t.total)
    throw usage_error(fmt::format("{}: a floor of {} leaves nothing of the {} that a job may have",
                                  of.origin, text(t.floor), text(t.total)));
  t.foreground = b.foreground ? milli_per_second(*b.foreground) : t.total - t.floor;
  if (t.foreground > t.total - t.floor)
    throw usage_error(
        fmt::format("{}: {} for the foreground and a floor of {} are more than the {} that a job "
                    "may have",
                    of.origin, text(t.foreground), text(t.floor), text(t.total)));
  for (unsigned i = 0; i < background_kind_count; ++i)
    if (!b.roles[i].empty()) t.channels[i] = fmt::format("{}:{}@{}", resource, b.roles[i], target);
  t.foreground_channel = fmt::format("{}:(foreground)@{}", resource, target);  // no role's name
  return t;
}

std::vector<background_terms> backgrounds_of(site const& s, std::string const& qos_class_name) {
  std::vector<background_terms> out;
  for (auto const& c : s.classes)
    for (auto const& [target, resources] : c.shares)
      for (auto const& [resource, share] : resources)
        if (c.name == qos_class_name && share.background)
          out.push_back(background_of(s, target, resource, share));
  return out;
}

void add_background_channels(site const& s, std::string const& qos_class_name,
                             std::vector<channel_spec>& channels) {
  auto const has = [&](std::string const& name) {
    return std::any_of(channels.begin(), channels.end(),
                       [&](channel_spec const& c) { return c.name == name; });
  };
  for (auto const& c : s.classes) {
    if (c.name != qos_class_name) continue;
    for (auto const& t : backgrounds_of(s, qos_class_name)) {
      auto const at = t.supply.find('@');
      std::string const resource = t.supply.substr(0, at), target = t.supply.substr(at + 1);
      share const& of = *share_named(c, target, resource);
      channel_spec rest = background_channel(t.foreground_channel, target, resource, of.origin);
      for (unsigned i = 0; i < background_kind_count; ++i) {
        if (t.channels[i].empty()) continue;
        rest.besides.push_back(of.background->roles[i]);
        if (has(t.channels[i])) continue;
        channels.push_back(background_channel(t.channels[i], target, resource, of.origin));
        channels.back().role = of.background->roles[i];
      }
      channels.push_back(std::move(rest));
    }
  }
}

std::string background_in_words(background_terms const& t) {
  auto const text = [](std::uint64_t milli) { return bound_text(milli, core::unit_kind::bytes); };
  std::vector<std::string> roles;
  for (auto const& name : t.channels) {
    if (name.empty()) continue;
    auto const colon = name.find(':');
    roles.push_back(name.substr(colon + 1, name.find('@') - colon - 1));
  }
  std::string const kept =
      t.algorithm == 0 ? fmt::format("up to {} of {} is kept free for the foreground",
                                     text(t.foreground), text(t.total))
                       : fmt::format("what the foreground uses of {} is kept free", text(t.total));
  return fmt::format("background work by {}: {}, {} {} the rest and at least {}{}",
                     background_rows[t.algorithm].name, kept, fmt::join(roles, ", "),
                     roles.size() == 1 ? "has" : "have", text(t.floor),
                     roles.size() == 1 ? "" : " each");
}

}  // namespace sluice::policy
