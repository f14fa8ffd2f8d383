// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/job_source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "commands/cli/control.h"
#include "commands/cli/order_rows.h"
#include "commands/cli/report.h"
#include "policy/limit.h"
#include "segment/counted.h"
#include "segment/jobs.h"
#include "segment/mapping.h"
#include "segment/run_dir.h"
#include "segment/sums.h"
#include "verbs/views/rows.h"

namespace sluice::cli {

namespace {

std::uint32_t waiters_at(foreign<abi::segment> const& s, unsigned channel) {
  unsigned const used = std::min(s.head.shards_used.load(), abi::owned_shards);
  std::uint32_t n = 0;
  for (unsigned i = 0; i < used; ++i) n += s.owned[i].waiting.channel.load() == channel + 1;
  for (auto const& common : s.common) n += common.waiting.channel.load() == channel + 1;
  return n;
}

verbs::rate milli(double per_s) { return static_cast<verbs::rate>(std::max(per_s, 0.0) * 1000); }

}  // namespace

std::set<std::string> folders_of(nlohmann::json const& jobs) {
  std::set<std::string> out;
  for (auto const& job : jobs) {
    std::string const name = job.value("job", "");
    out.insert(name);
    if (job.contains("uid")) out.insert(fmt::format("{}@{}", job["uid"].dump(), name));
  }
  return out;
}

job_source job_source::find(global_options const& global) {
  auto const search = find_daemon(global, patient_ms);
  std::string const own = own_run_dir_if_there(global);
  if (!search.found && (search.is_there || own.empty())) need_daemon(global);
  return {search.found, own};
}

std::string job_source::words() const {
  return daemon_ ? daemon_->role + " " + daemon_->name : "no daemon";
}

std::vector<std::string> job_source::options_for(bool is_own) const {
  if (is_own) return {"--no-daemon", "--run-dir", own_run_dir_};
  return {"--run-dir", std::filesystem::path(daemon_->socket).parent_path()};
}

/// Rates since the last look; at the first, since it began.
nlohmann::json job_source::own_job(std::string const& name, std::map<std::string, counts>& now) {
  auto const s = segment::mapping::open(segment::segment_path(own_run_dir_, name));
  if (!segment::is_live(*s)) return nullptr;
  auto const rules = segment::shown_rules_of(*s);
  verbs::job_view view;
  view.uid = geteuid();
  view.name = name;
  view.processes = static_cast<std::uint32_t>(segment::live_processes(*s, geteuid()).size());
  for (unsigned i = 0; i < rules->channel_count; ++i) {
    verbs::stream_view v;
    v.supply = std::string(core::view(*rules, rules->channel[i].name));
    auto const unit = static_cast<core::unit_kind>(rules->channel[i].unit);
    auto const sums = segment::sum_channel(*s, i);
    std::string const key = name + "\n" + v.supply;
    auto const known = before_.find(key);
    counts const first = {0, 0, static_cast<std::int64_t>(s->head.created_ns)};
    counts const& was = known == before_.end() ? first : known->second;
    counts const is = now[key] = {sums.amount, sums.waited_ns, steady_ns()};
    double const span_ns = static_cast<double>(std::max<std::int64_t>(is.at_ns - was.at_ns, 1));
    auto const grown = static_cast<std::int64_t>(is.amount - was.amount);
    v.unit = unit;
    double const counted = static_cast<double>(core::row_of(unit).counted);
    v.served = milli(static_cast<double>(grown) / counted * 1e9 / span_ns);
    v.waiters = waiters_at(*s, i);
    double const waited = static_cast<double>(is.waited_ns - was.waited_ns) / span_ns;
    double const part = v.waiters != 0 ? 1 : std::min(waited, 1.0);
    v.is_blocked = part > 0;
    v.blocked_ppm = static_cast<std::uint32_t>(part * 1e6);
    bool const counts_only = rules->channel[i].count_only != 0;
    v.granted =
        counts_only ? verbs::unbounded : milli(policy::per_second(unit, segment::rate_of(*s, i)));
    view.streams.push_back(std::move(v));
  }
  nlohmann::json row = verbs::job_row(view, user_name(view.uid), nullptr);
  row["own"] = true;
  row.erase("uid");  // such jobs are known by their name alone
  if (is_paused(own_run_dir_, name)) row["state"] = "paused";
  return row;
}

/// Of a job on this node whose area we may read.
void job_source::add_roles(nlohmann::json& job, std::string const& run_dir) {
  std::string const name = job.value("job", "");
  auto const streams = job.find("streams");
  if (name.empty() || name.find('/') != name.npos || streams == job.end() || !streams->is_array())
    return;
  auto const owner = job.find("uid");
  bool const is_told = owner != job.end() && owner->is_number_unsigned();
  uid_t const uid = is_told ? owner->get<uid_t>() : geteuid();
  for (std::string const& folder : {fmt::format("{}@{}", uid, name), name}) {
    auto const uses = segment::look_at_roles({segment::segment_path(run_dir, folder), uid});
    if (!uses.role.empty()) return roles_.add(job, run_dir + "\n" + folder, uses, steady_ns());
  }
}

nlohmann::json job_source::look(int timeout_ms) {
  nlohmann::json answer = {{"supplies", nlohmann::json::array()},
                           {"nodes", nlohmann::json::array()},
                           {"jobs", nlohmann::json::array()}};
  if (daemon_) answer = ask_all(*daemon_, {{"verb", "top"}}, "jobs", timeout_ms);
  if (daemon_ && daemon_->role == "node")
    for (auto& job : answer["jobs"])
      add_roles(job, std::filesystem::path(daemon_->socket).parent_path());
  add_own_jobs(answer["jobs"]);
  roles_.end_look();
  return answer;
}

void job_source::add_own_jobs(nlohmann::json& jobs) {
  if (own_run_dir_.empty()) return;
  auto const theirs = folders_of(jobs);
  std::map<std::string, counts> now;
  for (auto const& name : segment::list_jobs(own_run_dir_)) try {
      if (theirs.contains(name)) continue;
      nlohmann::json row = own_job(name, now);
      if (row.is_null()) continue;
      add_roles(row, own_run_dir_);
      jobs.push_back(std::move(row));
    } catch (error const&) {
      continue;  // it has just ended, or is of another version
    }
  before_ = std::move(now);
}

}  // namespace sluice::cli
