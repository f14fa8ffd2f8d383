// SPDX-License-Identifier: Apache-2.0
// See ruleset.h. Everything here is bounded for any content: the ruleset may have been scribbled
// over.
#include "core/ruleset.h"

#include "core/glob.h"

namespace sluice::core {

namespace {

bool in_pool(ruleset const& rules, text t) {
  return t.offset <= rules.string_bytes && t.length <= rules.string_bytes - t.offset;
}

bool valid_targets(ruleset const& rules) {
  for (unsigned i = 0; i < rules.target_count; ++i) {
    target_row const& t = rules.target[i];
    if (!in_pool(rules, t.path) || !in_pool(rules, t.name)) return false;
    if (t.parent >= rules.target_count || t.inside_count > max_inside_mounts) return false;
  }
  for (unsigned i = 0; i < rules.below_count; ++i)
    if (rules.below[i].target >= rules.target_count) return false;
  return true;
}

bool valid_rules(ruleset const& rules) {
  for (unsigned i = 0; i < rules.rule_count; ++i) {
    rule_row const& r = rules.rule[i];
    for (text const& at : {r.path_glob, r.thread_glob, r.role})
      if (!in_pool(rules, at)) return false;
    if (r.channel >= rules.channel_count) return false;
    if (r.target != any_target && r.target >= rules.target_count) return false;
  }
  return true;
}

bool valid_channel(ruleset const& rules, channel_row const& c) {
  if (!in_pool(rules, c.name) || !in_pool(rules, c.origin)) return false;
  bool const is_priced = c.unit == static_cast<std::uint8_t>(unit_kind::vops);
  return is_priced ? c.cost >= 1 && c.cost <= rules.cost_count : c.cost == 0;
}

}  // namespace

bool is_within(ruleset const& rules, unsigned target, unsigned ancestor) {
  if (ancestor == 0) return target == 0;  // elsewhere is what lies in no target
  for (unsigned depth = 0; depth < max_targets; ++depth) {
    if (target == ancestor) return true;
    if (target == 0 || target >= max_targets) return false;
    target = rules.target[target].parent;
  }
  return false;
}

unsigned with_mounts_below(ruleset const& rules, unsigned target) {
  for (unsigned depth = 0; depth < max_targets; ++depth) {
    if (target == 0 || target >= max_targets) return 0;
    if (rules.target[target].one_file_system == 0) return target;
    target = rules.target[target].parent;
  }
  return 0;
}

void index_rules(ruleset& rules) {
  bool reaches_elsewhere = rules.target_count <= 1;
  for (unsigned o = 0; o < op_count; ++o) {
    for (unsigned t = 0; t < max_targets; ++t) {
      std::uint64_t mask = 0;
      for (unsigned r = 0; r < rules.rule_count && t < rules.target_count; ++r) {
        rule_row const& row = rules.rule[r];
        bool const here = row.target == any_target || is_within(rules, t, row.target);
        if (here && (row.ops >> o & 1)) mask |= std::uint64_t{1} << r;
      }
      rules.rules_for[o][t] = mask;
      if (t == 0 && mask != 0) reaches_elsewhere = true;
    }
  }
  rules.counts_elsewhere = reaches_elsewhere ? 1 : 0;
}

std::uint64_t path_rules(ruleset const& rules, std::string_view path) {
  std::uint64_t mask = ~std::uint64_t{0};
  for (unsigned r = 0; r < rules.rule_count && r < max_rules; ++r) {
    text const glob = rules.rule[r].path_glob;
    if (glob.length == 0) continue;
    if (!path_match(view(rules, glob), path)) mask &= ~(std::uint64_t{1} << r);
  }
  return mask;
}

std::uint64_t caller_rules(ruleset const& rules, std::string_view thread, std::uint32_t user) {
  std::uint64_t mask = ~std::uint64_t{0};
  for (unsigned r = 0; r < rules.rule_count && r < max_rules; ++r) {
    rule_row const& row = rules.rule[r];
    bool const user_ok = row.user == any_user || row.user == user;
    bool const thread_ok =
        row.thread_glob.length == 0 || glob_match(view(rules, row.thread_glob), thread);
    if (!user_ok || !thread_ok) mask &= ~(std::uint64_t{1} << r);
  }
  return mask;
}

char const* validate(ruleset const& rules) {
  if (rules.target_count == 0 || rules.target_count > max_targets) return "target count";
  if (rules.rule_count > max_rules) return "rule count";
  if (rules.channel_count > max_channels) return "channel count";
  if (rules.quiet_count > max_quiet_devices) return "quiet device count";
  if (rules.below_count > max_devices_below) return "count of devices below targets";
  if (rules.string_bytes > string_pool_bytes) return "string pool size";
  if (rules.cost_count > max_cost_tables) return "count of cost tables";
  if (!valid_targets(rules)) return "a target row";
  if (!valid_rules(rules)) return "a rule row";
  for (unsigned i = 0; i < rules.channel_count; ++i) {
    channel_row const& c = rules.channel[i];
    if (c.unit >= unit_count) return "a channel unit";
    if (!valid_channel(rules, c)) return "a channel row";
  }
  for (unsigned i = 0; i < rules.cost_count; ++i)
    if (char const* const wrong = validate(rules.cost[i])) return wrong;
  std::uint64_t const known =
      rules.rule_count == max_rules ? ~0ull : (1ull << rules.rule_count) - 1;
  for (auto const& by_target : rules.rules_for)
    for (std::uint64_t mask : by_target)
      if ((mask & ~known) != 0) return "the index of rules";
  return nullptr;
}

}  // namespace sluice::core
