// SPDX-License-Identifier: Apache-2.0
// sluice stat: reading the counters of a job, never writing. Of a job whose segment is not ours to
// read, what its daemon says.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/program.h"
#include "base/quantity.h"
#include "commands/cli/daemon.h"
#include "commands/cli/explain_job.h"
#include "commands/cli/hold_back.h"
#include "commands/cli/job.h"
#include "commands/cli/report.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

double age_s(foreign<abi::segment> const& s) {
  auto const created_ns = static_cast<std::int64_t>(s.head.created_ns);
  return static_cast<double>(steady_ns() - created_ns) / 1e9;
}

json look(open_job const& job) {
  run_facts facts;
  facts.elapsed_s = age_s(*job.segment);
  facts.owner = job.owner;
  facts.segment_path = segment::segment_path(job.run_dir, job.name);
  json report = report_json(*job.segment, facts);
  put_roles(report, facts.segment_path, job.owner);
  put_background(report, facts.segment_path, job.owner);
  return report;
}

/// Bytes of each role that moved some, per second.
void print_roles(json const& before, json const& now, double span_s) {
  auto const bytes = [](json const& r) {
    return r["read_bytes"].get<double>() + r["written_bytes"].get<double>();
  };
  for (auto const& r : now) {
    double moved = bytes(r);
    for (auto const& b : before)
      if (b["role"] == r["role"]) moved -= bytes(b);
    if (moved > 0 && !r["role"].is_null())
      fmt::print("  {} {}", r["role"].get<std::string>(), measured_rate(moved / span_s, "bytes"));
  }
}

/// What happened between two looks.
void print_difference(json const& before, json const& now) {
  double const span_s = now["elapsed_s"].get<double>() - before["elapsed_s"].get<double>();
  double calls = 0;
  for (auto const& c : now["calls"]) calls += c["calls"].get<double>();
  for (auto const& c : before["calls"]) calls -= c["calls"].get<double>();
  fmt::print("{:8.1f} s  {:>12} calls", now["elapsed_s"].get<double>(),
             measured_rate(calls / span_s, "ops"));
  for (json const& c : now["channels"]) {
    if (is_internal(c)) continue;
    double amount = c["amount"].get<double>();
    for (json const& b : before["channels"])  // there may be others now: they are the user's words
      if (b["name"] == c["name"]) amount -= b["amount"].get<double>();
    fmt::print("  {} {}", c["name"].get<std::string>(), measured_rate(amount / span_s, c["unit"]));
  }
  if (now.contains("roles") && before.contains("roles"))
    print_roles(before["roles"], now["roles"], span_s);
  fmt::print("\n");
  flush_output();
}

void sleep_s(double seconds) {
  timespec left = {};
  left.tv_sec = static_cast<time_t>(seconds);
  left.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
  while (nanosleep(&left, &left) != 0) {
  }
}

int watch(global_options const& global, open_job const& job, double interval_s) {
  json before = look(job);
  while (segment::is_live(*job.segment)) {
    sleep_s(interval_s);
    json now = look(job);
    if (global.json)
      fmt::print("{}\n", now.dump(-1, ' ', false, json::error_handler_t::replace));
    else
      print_difference(before, now);
    flush_output();
    before = std::move(now);
  }
  return 0;
}

}  // namespace

int stat_verb(global_options const& global, stat_options const& options) {
  auto job = find_readable_job(global, options.job);
  if (!job) {
    if (auto const daemon = daemon_of_job(global, options.job))
      return explain_by_daemon(global, *daemon, options.job);
    job.emplace(find_job(global, options.job));
  }
  if (options.interval_s > 0) return watch(global, *job, std::max(options.interval_s, 0.1));
  json const report = look(*job);
  fmt::print("{}", global.json ? dump(report) : report_table(report));
  if (!global.json) print_capacities(global, options.job);
  return 0;
}

}  // namespace sluice::cli
