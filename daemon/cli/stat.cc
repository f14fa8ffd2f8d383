// SPDX-License-Identifier: Apache-2.0
// sluice stat and sluice jobs: reading, never writing.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/job.h"
#include "cli/report.h"
#include "policy/error.h"
#include "policy/limit.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

double age_s(abi::segment const& s) {
  auto const created_ns = static_cast<std::int64_t>(s.head.created_ns);
  return static_cast<double>(segment::monotonic_ns() - created_ns) / 1e9;
}

json look(abi::segment const& s) {
  run_facts facts;
  facts.elapsed_s = age_s(s);
  return report_json(s, facts);
}

std::string per_second(double amount, bool bytes) {
  if (!bytes) return fmt::format("{:.6g}/s", amount);
  return bytes_text(static_cast<std::uint64_t>(std::max(amount, 0.0))) + "/s";
}

/// What happened between two looks.
void print_difference(json const& before, json const& now) {
  double const span_s = now["elapsed_s"].get<double>() - before["elapsed_s"].get<double>();
  double calls = 0;
  for (auto const& c : now["calls"]) calls += c["calls"].get<double>();
  for (auto const& c : before["calls"]) calls -= c["calls"].get<double>();
  fmt::print("{:8.1f} s  {:>12} calls", now["elapsed_s"].get<double>(),
             per_second(calls / span_s, false));
  for (std::size_t i = 0; i < now["channels"].size(); ++i) {
    json const& c = now["channels"][i];
    double const amount = c["amount"].get<double>() - before["channels"][i]["amount"].get<double>();
    fmt::print("  {} {}", c["name"].get<std::string>(),
               per_second(amount / span_s, c["unit"] == "bytes"));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void sleep_s(double seconds) {
  timespec left = {};
  left.tv_sec = static_cast<time_t>(seconds);
  left.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
  while (nanosleep(&left, &left) != 0) {
  }
}

int watch(global_options const& global, open_job const& job, double interval_s) {
  json before = look(*job.segment);
  while (segment::is_live(*job.segment)) {
    sleep_s(interval_s);
    json now = look(*job.segment);
    if (global.json)
      fmt::print("{}\n", now.dump(-1, ' ', false, json::error_handler_t::replace));
    else
      print_difference(before, now);
    std::fflush(stdout);
    before = std::move(now);
  }
  return 0;
}

json job_row(std::string const& run_dir, std::string const& name) {
  json row = {{"job", name}};
  try {
    auto const s = segment::mapping::open(segment::segment_path(run_dir, name));
    row["live"] = segment::is_live(*s);
    row["processes"] = segment::live_processes(*s).size();
    row["age_s"] = age_s(*s);
    row["limits"] = json::array();
    for (unsigned i = 0; i < s->rules.channel_count; ++i) {
      auto const unit = static_cast<core::unit_kind>(s->rules.channel[i].unit);
      row["limits"].push_back({{"name", core::view(s->rules, s->rules.channel[i].name)},
                               {"rate", policy::rate_text(unit, rate_of(*s, i))}});
    }
  } catch (error const& e) {
    row["error"] = e.what();
  }
  return row;
}

void print_job(json const& row) {
  if (row.contains("error")) {
    fmt::print("{:<24} {}\n", row["job"].get<std::string>(), row["error"].get<std::string>());
    return;
  }
  std::string limits;
  for (auto const& l : row["limits"])
    limits += fmt::format("  {}={}", l["name"].get<std::string>(), l["rate"].get<std::string>());
  fmt::print("{:<24} {:>6} {:>9} {:>5}{}\n", row["job"].get<std::string>(),
             row["live"].get<bool>() ? "live" : "ended",
             fmt::format("{:.0f} s", row["age_s"].get<double>()),
             row["processes"].get<std::uint64_t>(), limits);
}

}  // namespace

int stat_verb(global_options const& global, stat_options const& options) {
  if (options.interval_s < 0 || options.interval_s > 86400)
    throw usage_error("stat: -i wants seconds, from 0.1 to 86400");
  open_job const job = find_job(global, options.job);
  if (options.interval_s > 0) return watch(global, job, std::max(options.interval_s, 0.1));
  json const report = look(*job.segment);
  fmt::print("{}", global.json ? dump(report) : report_table(report));
  return 0;
}

int jobs_verb(global_options const& global) {
  std::string const run_dir = segment::run_dir(global.run_dir);
  json rows = json::array();
  for (auto const& name : segment::list_jobs(run_dir)) rows.push_back(job_row(run_dir, name));
  if (global.json) {
    fmt::print("{}", dump(rows));
    return 0;
  }
  if (rows.empty()) fmt::print(stderr, "sluice: no jobs in {}\n", run_dir);
  if (!rows.empty())
    fmt::print("{:<24} {:>6} {:>9} {:>5}  limits\n", "job", "state", "age", "procs");
  for (auto const& row : rows) print_job(row);
  return 0;
}

}  // namespace sluice::cli
