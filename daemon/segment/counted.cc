// SPDX-License-Identifier: Apache-2.0
#include "segment/counted.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "calls.h"
#include "core/token_bucket.h"
#include "policy/limit.h"
#include "segment/mapping.h"
#include "segment/small_look.h"
#include "segment/sums.h"

namespace sluice::segment {

namespace {

using json = nlohmann::ordered_json;

json target_of(core::ruleset const& rules, unsigned channel) {
  for (unsigned r = 0; r < rules.rule_count; ++r) {
    core::rule_row const& rule = rules.rule[r];
    if (rule.channel == channel && rule.target != core::any_target)
      return core::view(rules, rules.target[rule.target].path);
  }
  return nullptr;
}

// What a limit that only counts would have done.
json would_json(foreign<abi::channel_state> const& state) {
  core::histogram_counts waits = {};
  as_shared(state.spared).add_to(waits);
  return {{"delayed", state.spared_calls.load(std::memory_order_relaxed)},
          {"waited_ns", state.spared_ns.load(std::memory_order_relaxed)},
          {"wait_p50_ns", waits.percentile(0.5)},
          {"wait_p99_ns", waits.percentile(0.99)},
          {"wait_max_ns", waits.most}};
}

/// A whole number, but for VOPs.
json amount_json(core::unit_kind unit, std::uint64_t amount) {
  return core::row_of(unit).counted == 1 ? json(amount) : json(core::counted_tokens(unit, amount));
}

json channel_json(foreign<abi::segment> const& s, core::ruleset const& rules, unsigned i,
                  channel_sums const& sum) {
  auto const unit = static_cast<core::unit_kind>(rules.channel[i].unit);
  core::histogram_counts const waits = waits_of(s, i);
  json row{{"name", core::view(rules, rules.channel[i].name)},
           {"rate_per_s", policy::per_second(unit, rate_of(s, i))},
           {"unit", core::row_of(unit).name},
           {"target", target_of(rules, i)},
           {"calls", sum.calls},
           {"amount", amount_json(unit, sum.amount)},
           {"delayed", sum.delayed},
           {"waited_ns", sum.waited_ns},
           {"wait_p50_ns", waits.percentile(0.5)},
           {"wait_p99_ns", waits.percentile(0.99)},
           {"wait_max_ns", waits.most}};
  if (rules.channel[i].count_only != 0) row["would"] = would_json(s.channel[i]);
  return row;
}

json call_time_json(core::ruleset const& rules, unsigned target, unsigned op,
                    foreign<abi::call_time> const& t) {
  core::histogram_counts took = {};
  as_shared(t.took).add_to(took);
  return {{"target", target == 0 ? json() : json(core::view(rules, rules.target[target].path))},
          {"op", core::op_table[op].name},
          {"estimated_calls", took.total()},
          {"samples", t.samples.load(std::memory_order_relaxed)},
          {"took_ns", t.took_ns.load(std::memory_order_relaxed)},
          {"took_p50_ns", took.percentile(0.5)},
          {"took_p99_ns", took.percentile(0.99)},
          {"took_max_ns", took.most}};
}

json times_json(foreign<abi::segment> const& s, core::ruleset const& rules) {
  json rows = json::array();
  for (unsigned t = 0; t < rules.target_count; ++t)
    for (unsigned o = 0; o < core::op_count; ++o)
      if (s.time[t][o].samples.load(std::memory_order_relaxed) != 0)
        rows.push_back(call_time_json(rules, t, o, s.time[t][o]));
  return rows;
}

using size_counts = std::atomic<std::uint64_t> const volatile (&)[abi::size_steps];

// {"below": bytes, "estimated_calls": n}: the calls that moved less than that, and at least half of
// it.
void add_sizes(json& rows, json const& target, char const* op, size_counts counts) {
  json steps = json::array();
  for (unsigned i = 0; i < abi::size_steps; ++i)
    if (auto const n = counts[i].load(std::memory_order_relaxed); n != 0)
      steps.push_back({{"below", std::uint64_t{1} << i}, {"estimated_calls", n}});
  if (!steps.empty()) rows.push_back({{"target", target}, {"op", op}, {"steps", steps}});
}

json sizes_json(foreign<abi::segment> const& s, core::ruleset const& rules) {
  json rows = json::array();
  for (unsigned t = 0; t < rules.target_count; ++t) {
    json const target = t == 0 ? json() : json(core::view(rules, rules.target[t].path));
    add_sizes(rows, target, "read", s.size[t].read);
    add_sizes(rows, target, "write", s.size[t].written);
  }
  return rows;
}

json calls_json(sums const& sums) {
  json rows = json::array();
  for (unsigned i = 0; i < call_count && i < sums.call.size(); ++i) {
    auto const& c = sums.call[i];
    if (c.calls == 0) continue;
    core::op_row const& op = core::op_table[static_cast<unsigned>(call_table[i].op)];
    rows.push_back({{"call", call_table[i].name},
                    {"op", op.name},
                    {"class", core::class_names[static_cast<unsigned>(op.cls)]},
                    {"calls", c.calls},
                    {"errors", c.errors},
                    {"bytes", c.bytes},
                    {"delayed", c.delayed},
                    {"waited_ns", c.waited_ns}});
  }
  return rows;
}

json passthrough_json(foreign<abi::segment> const& s) {
  json rows = json::array();
  for (unsigned i = 0; i < static_cast<unsigned>(abi::passthrough::count); ++i)
    if (auto const n = s.head.passthrough_calls[i].load(std::memory_order_relaxed); n != 0)
      rows.push_back({{"reason", abi::passthrough_names[i]}, {"calls", n}});
  return rows;
}

}  // namespace

core::histogram_counts waits_of(foreign<abi::segment> const& s, unsigned channel) {
  core::histogram_counts counts = {};
  as_shared(s.channel[channel].waits).add_to(counts);
  return counts;
}

std::uint64_t rate_of(foreign<abi::segment> const& s, unsigned channel) {
  return rate_of(s, channel, steady_ns());
}

std::uint64_t rate_of(foreign<abi::segment> const& s, unsigned channel, std::int64_t now_ns) {
  return core::rate_at(as_shared(s.bucket[channel]), now_ns);
}

nlohmann::ordered_json counted_json(foreign<abi::segment> const& s, std::size_t running,
                                    policy::small_targets const& targets) {
  sums const all = sum(s);
  json out;
  out["processes"] = {{"attached", s.head.attached_total.load(std::memory_order_relaxed)},
                      {"running", running}};
  out["channels"] = out["times"] = out["sizes"] = json::array();
  try {
    auto const rules = shown_rules_of(s);
    for (unsigned i = 0; i < all.channel.size() && i < rules->channel_count; ++i)
      out["channels"].push_back(channel_json(s, *rules, i, all.channel[i]));
    out["times"] = times_json(s, *rules);
    out["sizes"] = sizes_json(s, *rules);
  } catch (error const&) {
    // Scribbled over: nobody knows what its channels are.
  }
  out["calls"] = calls_json(all);
  out["passthrough"] = passthrough_json(s);
  if (json const small = counted_small(s, targets, running != 0); !small.is_null())
    out.update(small);
  return out;
}

}  // namespace sluice::segment
