// SPDX-License-Identifier: Apache-2.0
#include "cli/limits.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>

#include "policy/error.h"
#include "policy/order.h"
#include "policy/policy.h"

namespace sluice::cli {

policy::compile_input gather(limit_options const& options) {
  policy::compile_input input;
  input.monitor = options.monitor;
  if (options.policy.empty() && !options.qos_class.empty())
    throw usage_error("--class needs a daemon that knows the class, or --policy FILE");
  if (!options.policy.empty()) {
    policy::site const site = policy::read_policy(options.policy);
    input.targets = site.targets;
    input.channels = policy::channels_of(site, options.qos_class);
  }
  for (auto const& text : options.orders) input.targets.push_back(policy::parse_order_target(text));
  for (auto const& text : options.limits) input.channels.push_back(policy::parse_limit(text));
  return input;
}

namespace {

/// Nobody asks for a million reads a second on purpose: with a B it is bytes.
constexpr double odd_calls_per_s = 1e6;

/// No storage stands behind it, so nothing in it is counted (policy/mount_table).
bool is_quiet(std::string const& path) {
  struct statfs st = {};
  if (statfs(path.c_str(), &st) != 0) return false;
  static constexpr std::uint32_t quiet[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEVPTS_SUPER_MAGIC,
                                            CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC};
  return std::find(std::begin(quiet), std::end(quiet), static_cast<std::uint32_t>(st.f_type)) !=
         std::end(quiet);
}

std::string doubt_of(std::string const& text) {
  policy::channel_spec const c = policy::parse_limit(text);
  bool const only_bytes = core::byte_ops_of(c.ops) == c.ops;
  bool const is_ops = c.amount.unit == core::unit_kind::ops && !c.amount.any_unit;
  double const per_s = policy::per_second(c.amount.unit, c.amount.rate_q40);
  if (only_bytes && is_ops && per_s >= odd_calls_per_s)
    return "this counts calls; bytes are written with a B, like 10MB/s or 10MiB/s";
  if (c.target.starts_with("/") && is_quiet(c.target))
    return fmt::format("nothing in {} is limited: no storage stands behind it", c.target);
  return {};
}

}  // namespace

std::vector<std::string> doubts_of(limit_options const& options) {
  std::vector<std::string> out;
  for (auto const& text : options.limits)
    if (auto const why = doubt_of(text); !why.empty())
      out.push_back(fmt::format("--limit {}: {}", text, why));
  if (options.policy.empty() || !options.qos_class.empty()) return out;
  policy::site const site = policy::read_policy(options.policy);
  if (!site.channels.empty()) return out;
  std::string names;
  for (auto const& c : site.classes)
    names += (names.empty() ? "; its classes are " : ", ") + c.name;
  out.push_back(fmt::format("--policy {}: without --class nothing of it limits this program{}",
                            options.policy, names));
  return out;
}

policy::compiled compile_limits(limit_options const& options) {
  return policy::compile(gather(options), policy::this_machine());
}

std::string describe(core::ruleset const& r, unsigned i, std::uint64_t rate_q40) {
  core::rule_row const& rule = r.rule[i];
  core::channel_row const& channel = r.channel[rule.channel];
  std::string const rate = policy::rate_text(static_cast<core::unit_kind>(channel.unit), rate_q40);
  std::string line = fmt::format("\"{}\" {}{}", core::view(r, channel.name),
                                 rate_q40 == 0 ? "" : "at most ", rate);
  line += rule.target == core::any_target
              ? std::string(", everywhere")
              : fmt::format(", in {}", core::view(r, r.target[rule.target].path));
  if (rule.path_glob.length != 0)
    line += fmt::format(", files like {}", core::view(r, rule.path_glob));
  if (rule.thread_glob.length != 0)
    line += fmt::format(", threads named {}", core::view(r, rule.thread_glob));
  if (rule.user != core::any_user) line += fmt::format(", uid {}", rule.user);
  if (channel.count_only != 0) line += ", counted only";
  return line + fmt::format(" ({})", core::view(r, channel.origin));
}

}  // namespace sluice::cli
