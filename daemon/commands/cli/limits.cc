// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/limits.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/on_stderr.h"
#include "commands/cli/costs.h"
#include "policy/class_limits.h"
#include "policy/doubts.h"
#include "policy/order.h"
#include "policy/policy.h"
#include "policy/small.h"

namespace sluice::cli {

namespace {

void warn(std::vector<std::string> const& doubts) {
  for (auto const& line : doubts) on_stderr("sluice: warning: {}\n", line);
}

void warn_of(policy::compile_input const& input, policy::file_system const& files) {
  warn(policy::doubts(input.channels));
  warn(policy::doubts(input, files));
}

policy::compile_input gather(limit_options const& options, std::string const& no_daemon) {
  policy::compile_input input;
  if (options.policy.empty() && !options.qos_class.empty())
    throw usage_error(fmt::format("--class {}: {}; --policy FILE would say what the class has",
                                  options.qos_class, no_daemon));
  if (!options.policy.empty()) {
    policy::site const site = policy::read_policy(options.policy);
    std::string const& qos_class =
        options.qos_class.empty() ? site.control.default_class : options.qos_class;
    input = policy::input_of(site, qos_class);
    if (!options.quiet && options.limits.empty())
      warn(policy::doubts(site, options.policy, qos_class));
  }
  input.monitor = options.monitor;
  for (auto const& text : options.orders) input.targets.push_back(policy::parse_order_target(text));
  for (auto const& text : options.small) policy::add_small(text, input);
  for (auto const& text : options.limits) input.channels.push_back(policy::parse_limit(text));
  give_costs(read_costs(options.costs), input.channels);
  return input;
}

}  // namespace

policy::compiled compile_limits(limit_options const& options, std::string const& no_daemon) {
  policy::compile_input const input = gather(options, no_daemon);
  policy::file_system const files = policy::this_machine();
  policy::compiled out = policy::compile(input, files);
  if (!options.quiet) warn_of(input, files);
  return out;
}

void warn_of_limits(limit_options const& options) {
  if (options.quiet || options.limits.empty()) return;
  policy::compile_input input;
  for (auto const& text : options.limits) input.channels.push_back(policy::parse_limit(text));
  warn_of(input, policy::this_machine());
}

std::string describe(core::ruleset const& r, unsigned i, std::uint64_t rate_q40) {
  core::rule_row const& rule = r.rule[i];
  core::channel_row const& channel = r.channel[rule.channel];
  std::string const rate = policy::rate_text(static_cast<core::unit_kind>(channel.unit), rate_q40);
  bool const is_free = policy::is_unlimited(static_cast<core::unit_kind>(channel.unit), rate_q40);
  std::string line = fmt::format("\"{}\" {}{}", core::view(r, channel.name),
                                 rate_q40 == 0 || is_free ? "" : "at most ", rate);
  line += rule.target == core::any_target
              ? std::string(", everywhere")
              : fmt::format(", in {}", core::view(r, r.target[rule.target].path));
  if (rule.path_glob.length != 0)
    line += fmt::format(", files like {}", core::view(r, rule.path_glob));
  if (rule.thread_glob.length != 0)
    line += fmt::format(", threads named {}", core::view(r, rule.thread_glob));
  if (rule.role.length != 0) line += fmt::format(", role {}", core::view(r, rule.role));
  if (rule.user != core::any_user) line += fmt::format(", uid {}", rule.user);
  if (channel.count_only != 0) line += ", counted only";
  return line + fmt::format(" ({})", core::view(r, channel.origin));
}

}  // namespace sluice::cli
