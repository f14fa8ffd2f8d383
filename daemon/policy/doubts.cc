// SPDX-License-Identifier: Apache-2.0
#include "policy/doubts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "core/request.h"
#include "policy/background.h"
#include "policy/class_limits.h"
#include "policy/requests.h"
#include "policy/supply.h"

namespace sluice::policy {

namespace {

using lines = std::vector<std::string>;

// No storage does so many calls a second: who writes that means bytes.
constexpr double many_calls_per_s = 1e6;

bool has(channel_spec const& c, core::op op) { return (c.ops & core::op_bit(op)) != 0; }

void of_unit(channel_spec const& c, lines& out) {
  bool const only_bytes = core::byte_ops_of(c.ops) == c.ops;
  rate const& r = c.amount;
  if (!only_bytes || r.unit == core::unit_kind::bytes) return;
  if (!r.is_bare && per_second(r.unit, r.rate_q40) < many_calls_per_s) return;
  std::string const text = rate_text(r.unit, r.rate_q40);
  auto const period = std::min(text.find('/'), text.size());
  out.push_back(fmt::format("{}: {} counts calls; for bytes write {}B{}", c.origin, text,
                            text.substr(0, period), text.substr(period)));
}

/// A descriptor is given back at once, whatever it costs: that keeps programs from deadlocks.
void of_closes(channel_spec const& c, lines& out) {
  if (c.ops == core::op_bit(core::op::close))
    out.push_back(fmt::format("{}: close is counted and never held back", c.origin));
}

/// Programs open directories by another call, which may be limited as well.
void of_directories(channel_spec const& c, std::vector<channel_spec> const& all, lines& out) {
  if (!has(c, core::op::open) || has(c, core::op::opendir)) return;
  bool const is_covered = std::any_of(all.begin(), all.end(), [&](channel_spec const& other) {
    return has(other, core::op::opendir) && (other.target.empty() || other.target == c.target);
  });
  if (!is_covered)
    out.push_back(fmt::format(
        "{}: open does not cover opendir, which reads directories; metadata covers both",
        c.origin));
}

}  // namespace

lines doubts(std::vector<channel_spec> const& channels) {
  lines out;
  for (auto const& c : channels) {
    of_unit(c, out);
    of_closes(c, out);
  }
  return out;
}

lines gaps(std::vector<channel_spec> const& channels) {
  lines out;
  for (auto const& c : channels) of_directories(c, channels, out);
  return out;
}

lines idle_shares(site const& site) {
  lines out;
  for (auto const& c : site.classes)
    for (auto const& [target, resources] : c.shares)
      for (auto const& [resource, share] : resources) {
        auto const at = site.capacity.find(target);
        bool const is_shared = at != site.capacity.end() && at->second.contains(resource);
        bool const does_more = share.limit || share.background;
        if (is_shared || (does_more && share.weight == 1 && share.priority == 0)) continue;
        out.push_back(fmt::format(
            "{}: class {}, {} on {}: {} does nothing, as no capacity of it is given to share",
            share.origin, c.name, resource, target, share.priority != 0 ? "priority" : "weight"));
      }
  return out;
}

lines doubts(compile_input const& input, file_system const& files) {
  lines out;
  auto const quiet = quiet_devices(files.mounts);
  auto const look = [&](std::string const& origin, std::string const& path) {
    try {
      place const at = files.find(path);
      if (std::find(quiet.begin(), quiet.end(), at.device) != quiet.end())
        out.push_back(
            fmt::format("{}: {} lives in the kernel alone and is never limited", origin, at.path));
    } catch (error const&) {
      // It is not on this machine, which whoever uses it says.
    }
  };
  for (auto const& t : input.targets) look(t.origin, t.path);
  auto const is_named = [&](std::string const& name) {
    return std::any_of(input.targets.begin(), input.targets.end(),
                       [&](target_spec const& t) { return t.name == name; });
  };
  for (auto const& c : input.channels)
    if (!c.target.empty() && !is_named(c.target)) look(c.origin, c.target);
  return out;
}

lines doubts(site const& site, std::string const& file, std::string const& qos_class) {
  if (!site.roles.empty()) return {};  // they are counted
  auto const does_more = [](target_spec const& t) { return t.says_more(); };
  bool const does_any = std::any_of(site.targets.begin(), site.targets.end(), does_more);
  if (does_any || !channels_of(site, qos_class).empty()) return {};
  if (!qos_class.empty())
    return {
        fmt::format("--policy {}: class {} has no limit of its own: weights and reservations "
                    "need a daemon",
                    file, qos_class)};
  std::vector<std::string> known;
  for (auto const& c : site.classes) known.push_back(c.name);
  return {fmt::format("--policy {} without --class limits nothing{}", file, it_has(known))};
}

namespace {

/// What a daemon compiles for a job, which grants what its class has.
compile_input granted_input_of(site const& s, std::string const& qos_class) {
  compile_input input;
  input.targets = s.targets;
  input.roles = s.roles;
  input.channels = s.channels;
  for (auto const& of : supplies(s))
    if (of.capacity != 0) input.channels.push_back(granted_channel(of));
  add_background_channels(backgrounds_of(s, qos_class), input.channels);
  add_request_channels(promises_of(s, qos_class), input.channels);
  return input;
}

}  // namespace

std::vector<std::string> doubts_of_granted(site const& s) {
  std::vector<std::string> out;
  auto const look = [&](std::string const& qos_class) {
    try {
      compile(granted_input_of(s, qos_class), as_written());
    } catch (error const& e) {
      std::string of = qos_class.empty() ? "jobs" : "jobs of class " + qos_class;
      out.push_back(
          fmt::format("a node that has all of these directories refuses {}: {}", of, e.what()));
    }
  };
  look("");
  for (auto const& c : s.classes)
    if (out.empty()) look(c.name);
  return out;
}

}  // namespace sluice::policy
