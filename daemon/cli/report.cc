// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "calls.h"
#include "policy/limit.h"
#include "segment/jobs.h"

namespace sluice::cli {

namespace {

constexpr std::size_t table_calls = 10;  // rows of the busiest calls

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

json channel_json(abi::segment const& s, unsigned i, segment::channel_sums const& sum) {
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

json calls_json(segment::sums const& sums) {
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

std::string rate_column(json const& channel) {
  double const rate = channel["rate_per_s"];
  bool const bytes = channel["unit"] == "bytes";
  if (rate == 0) return "paused";
  return bytes ? bytes_text(static_cast<std::uint64_t>(rate)) + "/s"
               : fmt::format("{:.6g}/s", rate);
}

std::string channels_table(json const& channels) {
  if (channels.empty()) return {};
  std::string out = fmt::format("  {:<24} {:>12} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n", "limit",
                                "rate", "calls", "delayed", "waited", "p50", "p99", "max");
  for (auto const& c : channels)
    out += fmt::format("  {:<24} {:>12} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n",
                       c["name"].get<std::string>(), rate_column(c),
                       c["calls"].get<std::uint64_t>(), c["delayed"].get<std::uint64_t>(),
                       duration_text(c["waited_ns"]), duration_text(c["wait_p50_ns"]),
                       duration_text(c["wait_p99_ns"]), duration_text(c["wait_max_ns"]));
  return out;
}

std::string calls_table(json calls) {
  if (calls.empty()) return {};
  std::stable_sort(calls.begin(), calls.end(),
                   [](json const& a, json const& b) { return a["calls"] > b["calls"]; });
  std::string out = fmt::format("  {:<24} {:>12} {:>10} {:>10} {:>9} {:>9}\n", "call", "class",
                                "calls", "errors", "bytes", "waited");
  for (std::size_t i = 0; i < std::min(calls.size(), table_calls); ++i) {
    json const& c = calls[i];
    out += fmt::format("  {:<24} {:>12} {:>10} {:>10} {:>9} {:>9}\n", c["call"].get<std::string>(),
                       c["class"].get<std::string>(), c["calls"].get<std::uint64_t>(),
                       c["errors"].get<std::uint64_t>(), bytes_text(c["bytes"]),
                       duration_text(c["waited_ns"]));
  }
  if (calls.size() > table_calls)
    out += fmt::format("  and {} more calls; --report FILE has all\n", calls.size() - table_calls);
  return out;
}

}  // namespace

core::histogram_counts waits_of(abi::segment const& s, unsigned channel) {
  core::histogram_counts counts = {};
  s.channel[channel].waits.add_to(counts);
  return counts;
}

std::uint64_t rate_of(abi::segment const& s, unsigned channel) {
  return core::rate_at(s.bucket[channel], segment::monotonic_ns());
}

json report_json(abi::segment const& s, run_facts const& facts) {
  segment::sums const sums = segment::sum(s);
  json report = {{"version", 1}, {"job", segment::job_name(s)}};
  if (!facts.command.empty()) report["command"] = facts.command;
  if (facts.end)
    report["exit"] = facts.end->signal != 0 ? json{{"signal", facts.end->signal}}
                                            : json{{"code", facts.end->code}};
  report["elapsed_s"] = facts.elapsed_s;
  report["processes"] = {{"attached", s.head.attached_total.load(std::memory_order_relaxed)},
                         {"running", segment::live_processes(s).size()}};
  report["channels"] = json::array();
  for (unsigned i = 0; i < sums.channel.size(); ++i)
    report["channels"].push_back(channel_json(s, i, sums.channel[i]));
  report["calls"] = calls_json(sums);
  report["passthrough"] = passthrough_json(s);
  return report;
}

std::string report_table(json const& report) {
  std::string out = fmt::format("sluice: job {}: {:.2f} s, {} processes",
                                report["job"].get<std::string>(), report["elapsed_s"].get<double>(),
                                report["processes"]["attached"].get<std::uint64_t>());
  if (report.contains("exit"))
    out += report["exit"].contains("signal")
               ? fmt::format(", signal {}", report["exit"]["signal"].get<int>())
               : fmt::format(", exit {}", report["exit"]["code"].get<int>());
  else
    out += fmt::format(", {} running", report["processes"]["running"].get<std::uint64_t>());
  out += "\n" + channels_table(report["channels"]) + calls_table(report["calls"]);
  for (auto const& row : report["passthrough"])
    out += fmt::format("  not limited: {} calls ({})\n", row["calls"].get<std::uint64_t>(),
                       row["reason"].get<std::string>());
  if (report["processes"]["attached"] == 0)
    out += "  no process could be limited: see `sluice doctor`\n";
  return out;
}

std::string duration_text(std::uint64_t ns) {
  double const value = static_cast<double>(ns);
  if (ns == 0) return "0";
  if (ns < 1000) return fmt::format("{} ns", ns);
  if (ns < 1000000) return fmt::format("{:.3g} us", value / 1e3);
  if (ns < 1000000000) return fmt::format("{:.3g} ms", value / 1e6);
  return fmt::format("{:.4g} s", value / 1e9);
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr char const* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  unsigned i = 0;
  for (; value >= 1024 && i + 1 < std::size(units); ++i) value /= 1024;
  return fmt::format("{:.4g} {}", value, units[i]);
}

std::string dump(json const& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::cli
