// SPDX-License-Identifier: Apache-2.0
// sluice jobs: those of the daemon, and those of this user's run directory that run without one.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/on_stderr.h"
#include "base/quantity.h"
#include "commands/cli/daemon.h"
#include "commands/cli/job.h"
#include "commands/cli/job_source.h"
#include "commands/cli/picture.h"
#include "commands/cli/report.h"
#include "commands/cli/small_rows.h"
#include "policy/limit.h"
#include "policy/resource.h"
#include "segment/jobs.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

json own_row(std::string const& run_dir, std::string const& name) {
  json row = {{"job", name}};
  try {
    auto const s = segment::mapping::open(segment::segment_path(run_dir, name));
    auto const created_ns = static_cast<std::int64_t>(s->head.created_ns);
    row["live"] = segment::is_live(*s);
    row["processes"] = segment::live_processes(*s, geteuid()).size();
    row["age_s"] = static_cast<double>(steady_ns() - created_ns) / 1e9;
    row["limits"] = json::array();
    auto const rules = segment::shown_rules_of(*s);
    for (unsigned i = 0; i < rules->channel_count; ++i) {
      auto const unit = static_cast<core::unit_kind>(rules->channel[i].unit);
      row["limits"].push_back({{"name", core::view(*rules, rules->channel[i].name)},
                               {"rate", policy::rate_text(unit, rate_of(*s, i))}});
    }
    put_small(row, *s, segment::segment_path(run_dir, name), geteuid());
  } catch (error const& e) {
    row["error"] = e.what();
  }
  return row;
}

void print_own(json const& row) {
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
             row["processes"].get<std::uint64_t>(), limits + small_words(row));
}

/// What of a job no policy reaches, for the end of its line.
std::string not_governed(json const& job) {
  auto const at = job.find("not_governed");
  if (at == job.end() || !at->is_array() || at->empty()) return {};
  std::string names;
  for (auto const& name : *at)
    if (name.is_string()) names += " " + name.get<std::string>();
  return fmt::format("  not governed:{} (started before the policy)", names);
}

/// Of the daemon's jobs, our own: the memory of others' may not come, or take its time.
void add_small(global_options const& global, json& rows) {
  for (json& row : rows) try {
      std::string const name = row.value("job", "");
      bool const has_uid = row.contains("uid");
      if (has_uid && row["uid"] != geteuid()) continue;
      std::string const whose = has_uid ? row["uid"].dump() + "@" + name : name;
      if (auto const job = find_readable_job(global, whose)) put_small(row, *job);
    } catch (std::exception const&) {
      continue;  // a name that no job on this node can have
    }
}

void print_daemons(json const& rows) {
  fmt::print("{:<24} {:<10} {:<8} {:<8} {:>5} {:>5} {:>4}  served of grant\n", "job", "user",
             "class", "state", "nodes", "procs", "esc");
  for (auto const& job : rows) {
    auto const streams = read_job(nlohmann::json(job));
    stream_row const& first = streams.front();
    std::string amounts;
    for (auto const& s : streams)
      if (!s.supply.empty())
        amounts += fmt::format("  {} {} of {}", s.supply,
                               short_number(s.served, policy::unit_of_supply(s.supply)),
                               rate_words(s.grant, policy::unit_of_supply(s.supply)));
    fmt::print("{:<24} {:<10} {:<8} {:<8} {:>5} {:>5} {:>4}{}\n", first.job, first.user,
               first.qos_class, first.state, first.nodes, first.processes, first.escaped,
               amounts + not_governed(job) + small_words(job));
  }
}

}  // namespace

int jobs_verb(global_options const& global) {
  auto const search = find_daemon(global, patient_ms);
  warn_of(search);
  nlohmann::json theirs = nlohmann::json::array();
  if (search.found) theirs = ask_all(*search.found, {{"verb", "jobs"}}, "jobs")["jobs"];
  auto const known = folders_of(theirs);
  json rows = json(theirs);
  add_small(global, rows);
  std::string const run_dir = search.found ? own_run_dir_if_there(global) : own_run_dir(global);
  json own = json::array();
  if (!run_dir.empty())
    for (auto const& name : segment::list_jobs(run_dir))
      if (known.count(name) == 0) own.push_back(own_row(run_dir, name));
  if (global.json) {
    for (auto& row : rows) row["live"] = true;
    rows.insert(rows.end(), own.begin(), own.end());
    fmt::print("{}", dump(rows));
    return 0;
  }
  if (theirs.empty() && own.empty())
    on_stderr("sluice: no jobs {}\n",
              search.found ? "at " + search.found->socket : "in " + run_dir);
  if (!theirs.empty()) print_daemons(rows);
  if (!own.empty())
    fmt::print("{}{:<24} {:>6} {:>9} {:>5}  limits\n", theirs.empty() ? "" : "\n", "job", "state",
               "age", "procs");
  for (auto const& row : own) print_own(row);
  return 0;
}

}  // namespace sluice::cli
