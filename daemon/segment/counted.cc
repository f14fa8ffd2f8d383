// SPDX-License-Identifier: Apache-2.0
#include "segment/counted.h"

#include "calls.h"
#include "core/token_bucket.h"
#include "policy/limit.h"
#include "segment/jobs.h"

namespace sluice::segment {

namespace {

using json = nlohmann::ordered_json;

core::unit_kind unit_of(abi::segment const& s, unsigned channel) {
  return static_cast<core::unit_kind>(s.rules.channel[channel].unit);
}

json target_of(abi::segment const& s, unsigned channel) {
  for (unsigned r = 0; r < s.rules.rule_count; ++r) {
    core::rule_row const& rule = s.rules.rule[r];
    if (rule.channel == channel && rule.target != core::any_target)
      return core::view(s.rules, s.rules.target[rule.target].path);
  }
  return nullptr;
}

json channel_json(abi::segment const& s, unsigned i, channel_sums const& sum) {
  bool const bytes = unit_of(s, i) == core::unit_kind::bytes;
  core::histogram_counts const waits = waits_of(s, i);
  std::uint64_t longest = 0;
  for (std::size_t step = 0; step < core::histogram_steps; ++step)
    if (waits.count[step] != 0) longest = core::histogram_low(step + 1) - 1;
  return {{"name", core::view(s.rules, s.rules.channel[i].name)},
          {"rate_per_s", policy::per_second(unit_of(s, i), rate_of(s, i))},
          {"unit", bytes ? "bytes" : "ops"},
          {"target", target_of(s, i)},
          {"calls", sum.calls},
          {"amount", sum.amount},
          {"delayed", sum.delayed},
          {"waited_ns", sum.waited_ns},
          {"wait_p50_ns", waits.percentile(0.5)},
          {"wait_p99_ns", waits.percentile(0.99)},
          {"wait_max_ns", longest}};
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

json passthrough_json(abi::segment const& s) {
  json rows = json::array();
  for (unsigned i = 0; i < static_cast<unsigned>(abi::passthrough::count); ++i)
    if (auto const n = s.head.passthrough_calls[i].load(std::memory_order_relaxed); n != 0)
      rows.push_back({{"reason", abi::passthrough_names[i]}, {"calls", n}});
  return rows;
}

}  // namespace

core::histogram_counts waits_of(abi::segment const& s, unsigned channel) {
  core::histogram_counts counts = {};
  s.channel[channel].waits.add_to(counts);
  return counts;
}

std::uint64_t rate_of(abi::segment const& s, unsigned channel) {
  return core::rate_at(s.bucket[channel], monotonic_ns());
}

nlohmann::ordered_json counted_json(abi::segment const& s) {
  sums const all = sum(s);
  json out;
  out["processes"] = {{"attached", s.head.attached_total.load(std::memory_order_relaxed)},
                      {"running", live_processes(s).size()}};
  out["channels"] = json::array();
  for (unsigned i = 0; i < all.channel.size(); ++i)
    out["channels"].push_back(channel_json(s, i, all.channel[i]));
  out["calls"] = calls_json(all);
  out["passthrough"] = passthrough_json(s);
  return out;
}

}  // namespace sluice::segment
