// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "abi/order_area.h"
#include "base/foreign_file.h"
#include "base/quantity.h"
#include "commands/cli/epoch_look.h"
#include "commands/cli/hold_back.h"
#include "commands/cli/paths.h"
#include "commands/cli/small_rows.h"
#include "policy/limit.h"
#include "policy/requests.h"
#include "segment/counted.h"
#include "segment/jobs.h"
#include "segment/mapping.h"
#include "segment/role_look.h"
#include "segment/run_dir.h"
#include "segment/small_look.h"

namespace sluice::cli {

namespace {

constexpr std::size_t table_calls = 10;  // rows of the busiest calls
constexpr std::size_t table_times = 5;   // rows of the slowest ones

std::string rate_column(json const& channel) {
  double const rate = channel["rate_per_s"];
  core::unit_kind unit = core::unit_kind::ops;
  core::find_unit(channel["unit"].get<std::string>(), unit);
  if (rate * 1001 >= static_cast<double>(policy::unlimited(unit))) return "no limit";
  return rate == 0 ? "paused" : measured_rate(rate, channel["unit"]);
}

/// Of a channel that only counts: what it would have done.
json const& delays_of(json const& channel) {
  auto const would = channel.find("would");
  return would == channel.end() ? channel : *would;
}

std::string channels_table(json const& channels) {
  if (std::all_of(channels.begin(), channels.end(), is_internal)) return {};
  bool const is_only_counted = std::any_of(channels.begin(), channels.end(),
                                           [](json const& c) { return &delays_of(c) != &c; });
  std::string out = fmt::format("  {:<24} {:>12} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9}\n", "limit",
                                "rate", "calls", "delayed",
                                is_only_counted ? "would wait" : "waited", "p50", "p99", "max");
  for (auto const& c : channels) {
    if (is_internal(c)) continue;
    json const& d = delays_of(c);
    out += fmt::format("  {:<24} {:>12} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9}\n",
                       c["name"].get<std::string>(), rate_column(c),
                       c["calls"].get<std::uint64_t>(), d["delayed"].get<std::uint64_t>(),
                       time_words(d["waited_ns"]), time_words(d["wait_p50_ns"]),
                       time_words(d["wait_p99_ns"]), time_words(d["wait_max_ns"]));
  }
  if (is_only_counted)
    out += "  limits only counted: how many calls would have waited, and how long\n";
  return out;
}

/// Most time first.
std::string times_table(json times) {
  std::stable_sort(times.begin(), times.end(),
                   [](json const& a, json const& b) { return a["took_ns"] > b["took_ns"]; });
  if (times.empty()) return {};
  std::string out = fmt::format("  {:<24} {:>12} {:>10} {:>10} {:>9} {:>9}\n", "time in the calls",
                                "about", "p50", "p99", "longest", "timed");
  for (std::size_t i = 0; i < std::min(times.size(), table_times); ++i) {
    json const& t = times[i];
    std::string name = t["op"];
    if (!t["target"].is_null()) name += "@" + t["target"].get<std::string>();
    out +=
        fmt::format("  {:<24} {:>12} {:>10} {:>10} {:>9} {:>9}\n", name, time_words(t["took_ns"]),
                    time_words(t["took_p50_ns"]), time_words(t["took_p99_ns"]),
                    time_words(t["took_max_ns"]), t["samples"].get<std::uint64_t>());
  }
  if (times.size() > table_times)
    out += fmt::format("  and {} more; --report FILE has all\n", times.size() - table_times);
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
                       c["errors"].get<std::uint64_t>(), size_words(c["bytes"]),
                       time_words(c["waited_ns"]));
  }
  if (calls.size() > table_calls)
    out += fmt::format("  and {} more calls; --report FILE has all\n", calls.size() - table_calls);
  return out;
}

}  // namespace

bool is_internal(json const& channel) {
  return policy::is_request_channel(channel["name"].get<std::string>());
}

json report_json(foreign<abi::segment> const& s, run_facts const& facts) {
  json report = {{"version", 1}, {"job", segment::job_name(s)}};
  if (!facts.command.empty()) report["command"] = facts.command;
  if (facts.end)
    report["exit"] = facts.end->signal != 0 ? json{{"signal", facts.end->signal}}
                                            : json{{"code", facts.end->code}};
  report["elapsed_s"] = facts.elapsed_s;
  report.update(
      segment::counted_json(s, segment::live_processes(s, facts.owner).size(),
                            segment::small_targets_of(s, {facts.segment_path, facts.owner})));
  return report;
}

json order_json(std::string const& segment_path) {
  auto const file = open_foreign(segment::order_path(segment_path), O_RDONLY, any_owner);
  abi::order_header h = {};
  if (!file || pread(file.fd.get(), static_cast<void*>(&h), sizeof h, 0) != ssize_t(sizeof h))
    return {};
  if (h.layout != abi::order_layout_version) return {};
  json counts = json::object();
  for (unsigned i = 0; i < static_cast<unsigned>(abi::order_count::count); ++i)
    counts[abi::order_count_names[i]] = h.count[i].load();
  counts["blind"] = h.blind.load() != 0;
  return counts;
}

json after_json(std::string const& segment_path) {
  auto const look = look_at(segment::after_path(segment_path));
  if (!look) return {};
  json out = json::object();
  for (std::size_t i = 0; i < look->counts.size(); ++i)
    out[abi::after_count_names[i]] = look->counts[i];
  out["no_slot"] = look->no_slot;
  out["waited_ns"] = look->waited_ns;
  out["known"] = look->is_known;
  out["reason"] = look->reason;
  return out;
}

void put_roles(json& report, std::string const& segment_path, std::int64_t owner) {
  if (json roles = segment::roles_json({segment_path, owner}); !roles.is_null())
    report["roles"] = std::move(roles);
}

/// `thread 97 %, log 3 %`: how much of the bytes, or of the calls where none moved.
std::string sources_words(json const& sources) {
  std::uint64_t bytes = 0, calls = 0;
  for (auto const& s : sources) {
    bytes += s["bytes"].get<std::uint64_t>();
    calls += s["calls"].get<std::uint64_t>();
  }
  std::string out;
  for (auto const& s : sources) {
    double const part = bytes != 0
                            ? s["bytes"].get<double>() / double(bytes)
                            : s["calls"].get<double>() / double(std::max<std::uint64_t>(calls, 1));
    if (sources.size() == 1) return s["source"];
    out += fmt::format("{}{} {:.3g} %", out.empty() ? "" : ", ", s["source"].get<std::string>(),
                       part * 100);
  }
  return out;
}

/// Who the bytes and the waits were for, and how that is known.
std::string roles_table(json const& report) {
  auto const roles = report.find("roles");
  if (roles == report.end()) return {};
  std::string out = fmt::format("  {:<24} {:>10} {:>10} {:>10} {:>10} {:>9}  {}\n", "role", "calls",
                                "read", "written", "delayed", "waited", "known by");
  for (auto const& r : *roles) {
    if (r["calls"] == 0) continue;
    out += fmt::format("  {:<24} {:>10} {:>10} {:>10} {:>10} {:>9}  {}\n",
                       r["role"].is_null() ? "no role" : r["role"].get<std::string>(),
                       r["calls"].get<std::uint64_t>(), size_words(r["read_bytes"]),
                       size_words(r["written_bytes"]), r["delayed"].get<std::uint64_t>(),
                       time_words(r["waited_ns"]), sources_words(r["sources"]));
  }
  return out;
}

/// Gates that stayed closed are errors of the program: why, in a line of their own.
std::string after_line(json const& report) {
  auto const at = report.find("after");
  if (at == report.end()) return {};
  json const& a = *at;
  std::string out = fmt::format("  gates: {} opened, waited {}\n", a["opened"].get<std::uint64_t>(),
                                time_words(a["waited_ns"]));
  std::uint64_t const refused = a["refused"], silent = a["silent"], unknown = a["unknown"];
  if (refused != 0)
    out +=
        fmt::format("  gates: {} failed with EIO: {}\n", refused, a["reason"].get<std::string>());
  if (silent != 0)
    out +=
        fmt::format("  gates: {} failed with EIO: the node's sluiced has not answered\n", silent);
  if (std::uint64_t const no_slot = a.value("no_slot", std::uint64_t{0}); no_slot != 0)
    out += fmt::format("  gates: {} failed with EIO: too many of the job wait on this node\n",
                       no_slot);
  for (auto const& row : report["passthrough"])
    if (row["reason"] == "sandboxed")
      out += fmt::format(
          "  gates: passed unasked in a sandbox or another time namespace, entered {} times\n",
          row["calls"].get<std::uint64_t>());
  if (unknown != 0)
    out += fmt::format("  data: {} opens failed with EIO: the cluster did not know of this node\n",
                       unknown);
  return out;
}

std::string measured_rate(double per_s, std::string const& unit) {
  if (unit == "bytes") return size_words(static_cast<std::uint64_t>(std::max(per_s, 0.0))) + "/s";
  std::string const n =
      per_s < 1e6 ? fmt::format("{:.6g}", per_s) : short_number(per_s, core::unit_kind::ops);
  return fmt::format("{}{}/s", n, unit == "vops" ? " VOP" : "");
}

struct count_words {
  abi::order_count what;
  char const* words;
};
constexpr count_words order_words[] = {
    {abi::order_count::answered, "answered by the journal"},
    {abi::order_count::barriers, "fsync did not wait, but left a barrier"},
    {abi::order_count::gated, "changes that waited for a barrier"},
    {abi::order_count::sent_back,
     "synced by the program, as the daemon could not reach the file or "
     "write its journal"},
    {abi::order_count::absent, "synced by the program, as no daemon was there"},
    {abi::order_count::silent, "synced by the program, as the daemon did not answer"},
    {abi::order_count::no_slot, "synced by the program, as too many others waited"},
    {abi::order_count::bypassed, "synced by the program, as others write the file unseen"},
    {abi::order_count::alone, "synced by the program, as that was as quick"},
    {abi::order_count::own_sync, "writes that O_SYNC or O_DSYNC synced"},
    {abi::order_count::mapped, "msync that waited for the disk"},
    {abi::order_count::ranges, "sync_file_range that waited for the journal"},
    {abi::order_count::unnoted, "changes that found no room for a note"},
    {abi::order_count::marked, "files marked as newer than the journal"},
    {abi::order_count::mark_failed, "files that could not be marked"},
};
static_assert(std::size(order_words) == unsigned(abi::order_count::count), "none is left untold");

/// What became of each sync.
std::string order_lines(json const& report) {
  auto const order = report.find("order");
  if (order == report.end()) return {};
  std::string out;
  for (auto const& row : order_words)
    if (auto const n = order->value(abi::order_count_names[unsigned(row.what)], std::uint64_t{0}))
      out += fmt::format("  durable: {}: {}\n", row.words, n);
  if (order->value("blind", false))
    out += "  durable: a process wrote unseen, so programs synced all files themselves\n";
  return out.empty() ? "  durable: the journal had nothing to do\n" : out;
}

std::string report_table(json const& report) {
  std::uint64_t const attached = report["processes"]["attached"];
  std::string out =
      fmt::format("sluice: job {}: {:.2f} s, {} process{}", report["job"].get<std::string>(),
                  report["elapsed_s"].get<double>(), attached, attached == 1 ? "" : "es");
  if (report.contains("exit"))
    out += report["exit"].contains("signal")
               ? fmt::format(", signal {}", report["exit"]["signal"].get<int>())
               : fmt::format(", exit {}", report["exit"]["code"].get<int>());
  else
    out += fmt::format(", {} running", report["processes"]["running"].get<std::uint64_t>());
  std::uint64_t const left = report["processes"]["running"];
  if (report.contains("exit") && left != 0)
    out += fmt::format("; {} still {}: what {} from here on is not in this report", left,
                       left == 1 ? "runs" : "run", left == 1 ? "it does" : "they do");
  out += "\n" + channels_table(report["channels"]) + roles_table(report) +
         background_lines(report) + calls_table(report["calls"]) +
         times_table(report.value("times", json::array()));
  for (auto const& row : report["passthrough"])
    out += fmt::format("  not limited: {} calls ({})\n", row["calls"].get<std::uint64_t>(),
                       row["reason"].get<std::string>());
  out += counted_small_lines(report) + paths_table(report);
  out += order_lines(report) + after_line(report);
  if (report["processes"]["attached"] == 0)
    out += "  no process could be limited: see `sluice doctor`\n";
  return out;
}

std::string dump(json const& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::cli
