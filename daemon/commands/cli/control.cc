// SPDX-License-Identifier: Apache-2.0
// sluice set, pause, resume: a daemon's job is the daemon's to change; for another, new curves are
// put into the buckets here. One writer at a time: the segment file is locked meanwhile. Rates of a
// paused job are kept beside the segment, written before the pause begins, so that a command that
// dies half-way can be repeated.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/on_stderr.h"
#include "base/suggest.h"
#include "base/whole_file.h"
#include "commands/cli/control.h"
#include "commands/cli/job.h"
#include "commands/cli/report.h"
#include "commands/cli/steer.h"
#include "policy/compile.h"
#include "policy/limit.h"
#include "segment/curve.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"

namespace sluice::cli {

namespace {

using saved_rates = std::map<std::string, std::uint64_t>;  // channel name -> rate_q40

std::string pause_file(std::string const& run_dir, std::string const& job) {
  return segment::job_dir(run_dir, job) + "/paused";
}

std::string pause_file(open_job const& job) { return pause_file(job.run_dir, job.name); }

saved_rates read_saved(open_job const& job) {
  saved_rates saved;
  std::ifstream file(pause_file(job));
  // "RATE NAME" per line: a name may hold blanks.
  for (std::string line; std::getline(file, line);)
    if (auto const blank = line.find(' '); blank != std::string::npos)
      saved[line.substr(blank + 1)] = std::strtoull(line.c_str(), nullptr, 10);
  return saved;
}

void write_saved(open_job const& job, saved_rates const& saved) {
  std::string const path = pause_file(job);
  std::string text;
  for (auto const& [name, rate] : saved) text += fmt::format("{} {}\n", rate, name);
  if (!replace_file(path, text)) throw sluice_error("cannot write " + path);
}

std::string channel_name(core::ruleset const& rules, unsigned channel) {
  return std::string(core::view(rules, rules.channel[channel].name));
}

core::unit_kind unit_of(core::ruleset const& rules, unsigned channel) {
  return static_cast<core::unit_kind>(rules.channel[channel].unit);
}

void change(open_job const& job, core::unit_kind unit, unsigned channel, std::uint64_t rate_q40) {
  segment::write_curve(*job.segment, channel, policy::settings_of(unit, rate_q40), steady_ns());
}

std::vector<std::string> channel_names(core::ruleset const& rules) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < rules.channel_count; ++i) names.push_back(channel_name(rules, i));
  return names;
}

/// The channel of this name, or those of this resource at all its targets.
std::vector<unsigned> meant_by(open_job const& job, core::ruleset const& rules,
                               std::string const& name) {
  std::vector<unsigned> of_resource;
  auto const names = channel_names(rules);
  for (unsigned i = 0; i < rules.channel_count; ++i) {
    if (names[i] == name) return {i};
    if (names[i].starts_with(name + "@")) of_resource.push_back(i);
  }
  if (!of_resource.empty()) return of_resource;
  throw usage_error(fmt::format("job {} has no limit \"{}\"{}{}", segment::job_name(*job.segment),
                                name, did_you_mean(name, names), it_has(names)));
}

/// The rate in the unit of the channel.
std::uint64_t rate_for(core::unit_kind unit, std::string const& text, std::string const& where) {
  return policy::parse_amount(text, where, unit, "this limit").rate_q40;
}

void require_limits(open_job const& job, core::ruleset const& rules) {
  for (unsigned i = 0; i < rules.channel_count; ++i)
    if (rules.channel[i].count_only == 0) return;
  throw usage_error(
      fmt::format("job {} has no limits: it can only be watched", segment::job_name(*job.segment)));
}

void tell(global_options const& global, open_job const& job, core::ruleset const& rules) {
  json out = {{"job", job.name}, {"channels", json::array()}};
  for (unsigned i = 0; i < rules.channel_count; ++i) {
    std::string const rate = policy::rate_text(unit_of(rules, i), rate_of(*job.segment, i));
    out["channels"].push_back({{"name", channel_name(rules, i)}, {"rate", rate}});
    if (!global.json) fmt::print("{} {}\n", channel_name(rules, i), rate);
  }
  if (global.json) fmt::print("{}", dump(out));
}

/// Of a paused job: what it has after the pause.
void set_rate(open_job const& job, core::ruleset const& rules, unsigned channel,
              std::uint64_t rate_q40) {
  saved_rates saved = read_saved(job);
  auto const at = saved.find(channel_name(rules, channel));
  if (at == saved.end()) return change(job, unit_of(rules, channel), channel, rate_q40);
  at->second = rate_q40;
  write_saved(job, saved);
  on_stderr("sluice: job {} is paused: the new rate begins with `sluice resume`\n", job.name);
}

/// What makes a job wait that nobody paused; empty: nothing does.
std::string at_zero(open_job const& job, core::ruleset const& rules) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < rules.channel_count; ++i)
    if (rules.channel[i].count_only == 0 && rate_of(*job.segment, i) == 0)
      names.push_back(channel_name(rules, i));
  if (names.empty()) return {};
  return fmt::format("; {} {}: set {} to a rate", fmt::join(names, ", "),
                     names.size() == 1 ? "is 0" : "are 0", names.size() == 1 ? "it" : "them");
}

segment::file_lock lock(open_job const& job) {
  return segment::file_lock(segment::segment_path(job.run_dir, job.name));
}

}  // namespace

bool is_paused(std::string const& run_dir, std::string const& job) {
  std::error_code failed;
  return std::filesystem::exists(pause_file(run_dir, job), failed);
}

int set_verb(global_options const& global, set_options const& options) {
  auto const equals = options.assignment.rfind('=');
  if (equals == std::string::npos)
    throw usage_error(fmt::format("set: \"{}\": wanted CHANNEL=RATE, for example open=500/s",
                                  options.assignment));
  if (auto const at = options.assignment.find('@', equals); at != std::string::npos)
    throw usage_error(fmt::format("set: \"{}\": the target comes first: {}{}{}", options.assignment,
                                  options.assignment.substr(0, equals),
                                  options.assignment.substr(at),
                                  options.assignment.substr(equals, at - equals)));
  if (auto const status =
          steer_by_daemon(global, "set", options.job, options.assignment, options.how_long))
    return *status;
  open_job const job = find_job(global, options.job);
  auto const held = lock(job);
  std::string const name = options.assignment.substr(0, equals);
  auto const rules = segment::shown_rules_of(*job.segment);
  if (name == "class" || options.assignment.ends_with("=policy"))
    throw usage_error(
        fmt::format("set: job {} runs without a daemon, so its policy and class are "
                    "not kept: set its limits{}",
                    options.job, it_has(channel_names(*rules))));
  auto const meant = meant_by(job, *rules, name);
  std::vector<std::uint64_t> rates;  // all are read before the first one is changed
  for (unsigned const channel : meant)
    rates.push_back(rate_for(unit_of(*rules, channel), options.assignment.substr(equals + 1),
                             "set " + options.assignment));
  for (std::size_t i = 0; i < meant.size(); ++i) set_rate(job, *rules, meant[i], rates[i]);
  tell(global, job, *rules);
  return 0;
}

int pause_verb(global_options const& global, pause_options const& options) {
  if (auto const status = steer_by_daemon(global, "pause", options.job, {}, options.how_long))
    return *status;
  open_job const job = find_job(global, options.job);
  auto const held = lock(job);
  auto const rules = segment::shown_rules_of(*job.segment);
  require_limits(job, *rules);
  saved_rates saved = read_saved(job);
  for (unsigned i = 0; i < rules->channel_count; ++i)
    if (std::uint64_t const rate_q40 = rate_of(*job.segment, i); rate_q40 != 0)
      saved[channel_name(*rules, i)] = rate_q40;
  write_saved(job, saved);
  for (unsigned i = 0; i < rules->channel_count; ++i) change(job, unit_of(*rules, i), i, 0);
  tell(global, job, *rules);
  return 0;
}

int resume_verb(global_options const& global, pause_options const& options) {
  if (auto const status = steer_by_daemon(global, "resume", options.job, {}, options.how_long))
    return *status;
  open_job const job = find_job(global, options.job);
  auto const held = lock(job);
  auto const rules = segment::shown_rules_of(*job.segment);
  saved_rates const saved = read_saved(job);
  if (saved.empty())
    throw usage_error(fmt::format("job {} is not paused{}", options.job, at_zero(job, *rules)));
  for (unsigned i = 0; i < rules->channel_count; ++i)
    if (auto const at = saved.find(channel_name(*rules, i)); at != saved.end())
      change(job, unit_of(*rules, i), i, at->second);
  std::error_code ignored;
  std::filesystem::remove(pause_file(job), ignored);
  tell(global, job, *rules);
  return 0;
}

}  // namespace sluice::cli
