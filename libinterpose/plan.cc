// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <linux/prctl.h>

#include <cstddef>
#include <string_view>

#include "paths.h"
#include "sys.h"
#include "visit.h"

namespace sluice {

gate_plan plan_gate(unsigned gate) {
  unsigned const channel = gate & gate_channel;
  std::size_t const counters =
      offsetof(abi::shard, channel) + channel * sizeof(abi::channel_counters);
  std::size_t const curve = channel * sizeof(core::bucket) + offsetof(core::bucket, gen);
  static_assert(sizeof(abi::shard) <= 1 << 16 && sizeof(abi::segment::bucket) <= 1 << 16);
  return {static_cast<std::uint16_t>(counters), static_cast<std::uint16_t>(curve)};
}

bool is_below_filter() {
  long const mode = sys::call(SYS_prctl, PR_GET_SECCOMP);
  return !sys::failed(mode) && mode != 0;
}

namespace {

// What every call asks is copied out of the segment: it is nearer, and nobody else can change it.
void note_rule_kinds(core::ruleset const& rules) {
  stage.counts_elsewhere = rules.counts_elsewhere != 0;
  stage.first_counted = entry_first_target + (stage.counts_elsewhere ? 0 : 1);
  for (unsigned r = 0; r < rules.rule_count; ++r) {
    core::rule_row const& row = rules.rule[r];
    core::channel_row const& channel = rules.channel[row.channel];
    bool const is_bytes = channel.unit == static_cast<std::uint8_t>(core::unit_kind::bytes);
    bool const is_priced = channel.unit == static_cast<std::uint8_t>(core::unit_kind::vops);
    unsigned const gate = row.channel | (is_bytes ? gate_bytes : 0) | (is_priced ? gate_vops : 0) |
                          (channel.count_only != 0 ? gate_counts : 0);
    stage.gate_of_rule[r] = static_cast<std::uint16_t>(gate);
    stage.has_prices |= is_priced;
    if (is_priced) stage.has_measured |= core::costs_of(rules, row.channel).by_device != 0;
    if (row.path_glob.length == 0) {
      stage.plain_rules |= std::uint64_t{1} << r;
    } else {
      stage.has_path_globs = true;
      if (core::view(rules, row.path_glob).find('/') != std::string_view::npos)
        stage.has_whole_globs = true;
    }
    if (row.thread_glob.length != 0 || row.user != core::any_user) stage.has_callers = true;
  }
  // What is measured costs what its size says then.
  if (stage.has_measured && is_below_filter()) stage.has_measured = false;
  if (rules.rule_count < 64) stage.plain_rules |= ~std::uint64_t{0} << rules.rule_count;
}

// Where the table of a gate lies, plus one: 0 says that it counts no VOPs.
std::uint16_t plan_cost(core::ruleset const& rules, unsigned gate) {
  if ((gate & gate_vops) == 0) return 0;
  unsigned const table = rules.channel[gate & gate_channel].cost;
  static_assert(core::max_cost_tables * sizeof(core::cost_table) < 1 << 16);
  return static_cast<std::uint16_t>(table * sizeof(core::cost_table));
}

// What it costs is known when it has been made.
bool is_measured(unsigned op) {
  return stage.has_measured && (core::byte_ops_of(~std::uint64_t{0}) >> op & 1) != 0;
}

// What an op that moves no bytes costs at such a gate.
std::uint32_t fixed_units(core::ruleset const& rules, unsigned gate, unsigned column) {
  core::cost_table const& costs = core::costs_of(rules, gate & gate_channel);
  return column == core::op_count ? costs.create_milli : costs.op_milli[column];
}

// What most calls meet is known before any is made.
op_plan plan_of(core::ruleset const& rules, unsigned column, unsigned entry) {
  op_plan row;
  bool const creates = column == core::op_count;
  unsigned const op = creates ? static_cast<unsigned>(core::op::open) : column;
  unsigned const target = entry - entry_first_target;
  if (entry < stage.first_counted || target >= rules.target_count) return row;
  std::uint64_t const mask = rules.rules_for[op][target];
  std::uint64_t const after_first = mask & (mask - 1),
                      after_second = after_first & (after_first - 1);
  // The class of a new file's name stays with its fd, whatever `open` itself meets.
  bool const needs_name = stage.has_path_globs && op == static_cast<unsigned>(core::op::open);
  bool const is_noted = paths::area != nullptr || stage.has_roles;
  row.what = mask == 0 && !needs_name && !is_noted ? planned::count : planned::rules;
  bool const is_plain = !is_noted && !stage.has_path_globs && !stage.has_callers;
  if (mask == 0 || after_second != 0 || !is_plain) return row;
  unsigned const first = stage.gate_of_rule[__builtin_ctzll(mask)];
  unsigned const second = after_first == 0 ? 0 : stage.gate_of_rule[__builtin_ctzll(after_first)];
  if (((first | second) & gate_counts) != 0) return row;
  bool const is_priced = ((first | second) & gate_vops) != 0;
  if (is_priced && (is_measured(op) || (creates && after_first != 0))) return row;
  row.first = plan_gate(first);
  if (is_priced && after_first == 0 && !moves_bytes(static_cast<core::op>(op))) {
    row.what = planned::fixed;
    row.units = fixed_units(rules, first, column);
    return row;
  }
  row.what = is_priced ? planned::priced : planned::gate;
  row.cost.first = plan_cost(rules, first);
  row.first_bytes = (first & gate_bytes) != 0;
  if (after_first != 0) row.second = plan_gate(second);
  if (after_first != 0) row.cost.second = plan_cost(rules, second);
  row.second_bytes = (second & gate_bytes) != 0;
  return row;
}

}  // namespace

void plan_calls(core::ruleset const& rules) {
  note_rule_kinds(rules);
  unsigned const rows = entry_first_target + rules.target_count;  // the rest says not_ours
  for (unsigned entry = 0; entry < rows; ++entry)
    for (unsigned column = 0; column < plan_columns; ++column)
      stage.mine->plan[entry][column] = plan_of(rules, column, entry);
}

}  // namespace sluice
