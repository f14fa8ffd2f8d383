// SPDX-License-Identifier: Apache-2.0
#include "node/job_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "policy/background.h"
#include "policy/class_limits.h"
#include "policy/cost_file.h"
#include "policy/order.h"
#include "policy/requests.h"
#include "policy/small.h"
#include "policy/supply.h"

namespace sluice::node {

namespace {

bool is_there(policy::target_spec const& target, policy::file_system const& files) {
  try {
    files.find(target.path);
    return true;
  } catch (error const&) {
    return false;
  }
}

fixed_channel fixed_of(policy::channel_spec const& c, bool is_own) {
  return {c.name, c.amount.unit, c.amount.rate_q40, is_own};
}

/// The costs of the policy were measured on another mount than this node has there: VOPs would be a
/// promise of nothing. All else of the target is metered.
bool has_other_costs(policy::site const& site, policy::supply const& of,
                     policy::file_system const& files) {
  if (of.unit != core::unit_kind::vops) return false;
  for (auto const& target : site.targets)
    if (target.name == of.target && target.costs != nullptr)
      return !policy::why_other_costs(*target.costs, target.path, files).empty();
  return true;
}

/// Paths of the policy are the site's, whoever names them.
policy::place find_for(policy::site const& site, limit_wish const& wish,
                       policy::file_system const& files, std::string const& path) {
  bool const is_sites = std::any_of(site.targets.begin(), site.targets.end(),
                                    [&](auto const& target) { return target.path == path; });
  if (is_sites) return files.find(path);
  if (auto const at = wish.places.find(path); at != wish.places.end()) return at->second;
  if (wish.may_look) return files.find(path);
  throw usage_error(
      fmt::format("target {}: the policy has none of this name, and the request does not say where "
                  "the directory lies; `sluice run` of this version says it",
                  path));
}

/// Limits of roles that are steered (backgrounds.h), and what counts requests that are promised
/// (profiles.h): found again by their names.
template <typename Lacks>
void add_followed(policy::site const& site, std::string const& qos_class, Lacks const& lacks,
                  std::vector<policy::channel_spec>& channels) {
  std::size_t const before = channels.size();
  policy::add_background_channels(policy::backgrounds_of(site, qos_class), channels);
  policy::add_request_channels(policy::promises_of(site, qos_class), channels);
  auto const first = channels.begin() + static_cast<std::ptrdiff_t>(before);
  channels.erase(
      std::remove_if(first, channels.end(), [&](auto const& c) { return lacks(c.target); }),
      channels.end());
}

}  // namespace

job_limits limits_of(site_state const& site, limit_wish const& wish,
                     policy::file_system const& files) {
  job_limits out;
  policy::compile_input input;
  input.monitor = wish.monitor;
  input.roles = site.site().roles;
  auto const lacks = [&](std::string const& target) {
    return std::find(out.left_out.begin(), out.left_out.end(), target) != out.left_out.end();
  };
  for (auto const& target : site.site().targets) {
    if (is_there(target, files))
      input.targets.push_back(target);
    else
      out.left_out.push_back(target.name);
  }
  for (auto const& c : site.site().channels) {
    if (lacks(c.target) || !wish.policy_channels) continue;
    input.channels.push_back(c);
    out.fixed.push_back(fixed_of(c, false));
  }
  for (auto const& slot : site.supplies()) {
    if (slot.of.capacity == 0 || lacks(slot.of.target)) continue;
    if (has_other_costs(site.site(), slot.of, files)) {
      out.left_out.push_back(slot.of.name());
      continue;
    }
    input.channels.push_back(policy::granted_channel(slot.of));
    out.granted.push_back(slot.of.name());
  }
  add_followed(site.site(), wish.qos_class, lacks, input.channels);
  for (auto const& text : wish.orders) input.targets.push_back(policy::parse_order_target(text));
  for (auto const& text : wish.small) policy::add_small(text, input);
  for (auto const& text : wish.own) {
    policy::channel_spec c = policy::parse_limit(text);
    if (auto const at = wish.costs.find(text); at != wish.costs.end())
      c.costs = std::make_shared<policy::cost_file const>(
          policy::parse_cost_file(at->second, "--cost of --limit " + text));
    bool const taken = std::any_of(input.channels.begin(), input.channels.end(),
                                   [&](auto const& other) { return other.name == c.name; });
    if (taken) c.name += ":limit";
    out.fixed.push_back(fixed_of(c, true));
    input.channels.push_back(std::move(c));
  }
  std::map<std::string, policy::place> found;  // by canonical path, which is asked for again
  auto const find = [&](std::string const& path) {
    if (auto const at = found.find(path); at != found.end()) return at->second;
    policy::place const at = find_for(site.site(), wish, files, path);
    return found.emplace(at.path, at).first->second;
  };
  out.compiled = policy::compile(input, {files.mounts, find});
  return out;
}

std::vector<std::string> absent(std::span<policy::target_spec const> targets,
                                policy::file_system const& files) {
  std::vector<std::string> out;
  for (auto const& target : targets)
    if (!is_there(target, files))
      out.push_back(
          fmt::format("target {}: {} is not there now; a job that begins before it is "
                      "has no limit there",
                      target.name, target.path));
  return out;
}

}  // namespace sluice::node
