// SPDX-License-Identifier: Apache-2.0
// The part of the job table that knows the scheduler's jobs. What stays true: a job is bound to its
// user and class by what root announced and the policy allows; nothing in it can choose another.
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "abi/segment.h"
#include "base/boot_id.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "node/job_table.h"
#include "node/proc.h"
#include "segment/jobs.h"
#include "segment/run_dir.h"

namespace sluice::node {

namespace {

constexpr std::size_t most_steps = 64;

/// The user of an announced job as if he asked himself.
local::peer owner_of(announcement const& a) {
  local::peer who = {a.uid, static_cast<gid_t>(-1), 0, -1, {}};
  passwd const* const user = getpwuid(a.uid);
  if (user != nullptr) who.gid = user->pw_gid;
  if (a.gid) who.gid = *a.gid;
  if (user == nullptr) return who;
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  if (getgrouplist(user->pw_name, who.gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(std::clamp(count, 1, 65536)));
    count = static_cast<int>(groups.size());
    if (getgrouplist(user->pw_name, who.gid, groups.data(), &count) < 0) return who;
  }
  groups.resize(static_cast<std::size_t>(count));
  who.groups = std::move(groups);
  return who;
}

void add_note(std::string& note, std::string const& more) {
  note += (note.empty() ? "" : "; ") + more;
}

/// Its class, or what it gets instead of one it may not have.
std::string class_or_default(local::peer const& who, std::string const& wish,
                             site_state const& site, std::string& note) {
  try {
    if (!wish.empty()) return class_for(who, wish, site);
  } catch (error const& e) {
    add_note(note, e.what());
  }
  try {
    return class_for(who, std::nullopt, site);
  } catch (error const&) {
    return {};
  }
}

}  // namespace

/// With the limits its user gave, or without them when they cannot be.
job& job_table::make_for(announcement const& a, local::peer const& who,
                         std::string const& qos_class, site_state const& site, std::string& note) {
  join_request request;
  if (!qos_class.empty()) request.qos_class = qos_class;
  request.limits = a.limits;
  std::string lacks;
  try {
    job& made = make(who, a.job, request, site, &lacks);
    if (!lacks.empty()) add_note(note, lacks);
    return made;
  } catch (segment::no_room const&) {
    throw;  // its limits are not why
  } catch (error const& e) {
    if (a.limits.empty()) throw;
    add_note(note, e.what());
  }
  request.limits.clear();
  job& made = make(who, a.job, request, site, &lacks);
  if (!lacks.empty()) add_note(note, lacks);
  return made;
}

job& job_table::schedule(announcement const& a, site_state const& site, std::string note) {
  segment::check_job_name(a.job);
  job* there = find(a.uid, a.job);
  // Its user made it before such names were the scheduler's, or has another scheme of names.
  if (there != nullptr && !there->record.scheduler) {
    remove(*there, "the scheduler has announced a job of that name");
    there = nullptr;
  }
  bool const is_new = there == nullptr;
  std::string qos_class;
  local::peer who = {};
  if (is_new) {  // the name service is asked for those alone
    who = owner_of(a);
    qos_class = class_or_default(who, a.qos_class, site, note);
  }
  job& j = there != nullptr ? *there : make_for(a, who, qos_class, site, note);
  scheduler_terms s = j.record.scheduler.value_or(scheduler_terms{});
  if (is_new) {
    j.record.qos_class = qos_class;
    s.is_metered = !qos_class.empty() || !a.limits.empty();
    s.is_open = a.qos_class.empty();
    dated_moment const came = dated_now();
    s.since_unix_s = static_cast<std::int64_t>(came.unix_s);
    s.since_boot_s = came.boot_s;
    s.boot = boot_id();
    s.note = note;
  }
  s.is_held = true;
  s.account = a.account;
  s.label = a.label;
  s.nodes = a.nodes;
  j.record.scheduler = std::move(s);
  keep_scheduled(j);
  if (is_new)
    log_.info("job announced", {{"job", a.job},
                                {"uid", a.uid},
                                {"class", qos_class},
                                {"account", a.account},
                                {"note", note}});
  return j;
}

void job_table::keep_scheduled(job const& j) {
  auto const& terms = *j.record.scheduler;
  std::string const held = segment::held_path(run_dir_, j.folder);
  if (!replace_file(held, terms.is_metered ? j.record.qos_class + "\n" : "-\n", {.mode = 0644}))
    log_.warning("cannot be written", {{"path", held}});
  keep(j);
}

bool job_table::has_scheduled(std::string const& name) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](auto const& j) {
    return j->record.scheduler && j->record.scheduler->is_held && j->record.name == name;
  });
}

void job_table::release(job& j) {
  if (!j.record.scheduler) return;
  j.record.scheduler->is_held = false;
  j.record.scheduler->steps.clear();
  j.life = {};  // until somebody has looked
  std::error_code ignored;
  std::filesystem::remove(segment::held_path(run_dir_, j.folder), ignored);
  keep(j);
}

void job_table::add_step(job& j, std::uint32_t pid, bool is_batch) {
  auto& terms = *j.record.scheduler;
  if (auto const step = processes_.mark_of(pid)) keep_mark(terms.steps, *step, most_steps);
  terms.had_batch = terms.had_batch || is_batch;
  j.life = {};
  keep(j);
}

job* job_table::below_a_step(pid_t pid) {
  for (process_mark const& above : processes_.line_of(static_cast<std::uint32_t>(pid)))
    for (auto const& j : jobs_) {
      if (!j->record.scheduler) continue;
      auto const is_it = [&](process_mark const& step) {
        return step.pid == above.pid && abi::is_start(step.start_ticks, above.start_ticks);
      };
      if (std::ranges::any_of(j->record.scheduler->steps, is_it)) return j.get();
    }
  return nullptr;
}

job* job_table::scheduled_job_of(local::peer const& who, std::string const& hint) {
  std::vector<job*> mine;
  for (auto const& j : jobs_)
    if (j->record.scheduler && j->record.uid == who.uid) mine.push_back(j.get());
  if (mine.empty() || has_ended(who)) return nullptr;
  std::string const name =
      job_in_groups(read_file(fmt::format("/proc/{}/cgroup", who.pid)).value_or(""), node_name_);
  job* found = nullptr;
  for (job* j : mine)
    if (j->record.name == name) found = j;
  bool const has_steps =
      std::ranges::any_of(mine, [](job const* j) { return !j->record.scheduler->steps.empty(); });
  if (found == nullptr && has_steps) found = below_a_step(who.pid);
  if (found != nullptr && found->record.uid != who.uid) found = nullptr;
  // A process that left its step behind is still its user's, who may say which job he means.
  for (job* j : mine)
    if (found == nullptr && who.uid != 0 && (mine.size() == 1 || j->record.name == hint)) found = j;
  return has_ended(who) ? nullptr : found;
}

joined job_table::join_scheduled(job& j, local::peer const& who, join_request const& request,
                                 site_state const& site) {
  job_record& r = j.record;
  if (request.qos_class && *request.qos_class != r.qos_class) {
    if (!r.scheduler->is_open)
      throw usage_error(
          fmt::format("this is job {}, which is in class \"{}\"", r.name, r.qos_class));
    r.qos_class = class_for(who, request.qos_class, site);
    r.scheduler->is_metered = true;
    j.is_announced = false;
    log_.info("job has chosen", {{"job", r.name}, {"uid", r.uid}, {"class", r.qos_class}});
  }
  if (request.qos_class) r.scheduler->is_open = false;
  std::vector<std::string> limits = request.limits;
  std::sort(limits.begin(), limits.end());
  if (!limits.empty() && limits != r.limits)
    throw usage_error(fmt::format(
        "this is job {}: lower a limit of it with `sluice set {} CHANNEL=RATE`", r.name, r.name));
  check_keeps_targets(j, request);
  add_joiner(j, who);
  j.life = {};
  keep_scheduled(j);
  return {&j, false};
}

}  // namespace sluice::node
