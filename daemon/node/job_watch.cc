// SPDX-License-Identifier: Apache-2.0
#include "node/job_watch.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/process_mark.h"
#include "segment/jobs.h"
#include "segment/sums.h"

namespace sluice::node {

namespace {

constexpr unsigned heads_per_step = 64;
constexpr std::int64_t walk_slots_ns = 60'000'000'000;  // whatever seems to be the same
constexpr std::int64_t count_every_ns = 200'000'000, count_quiet_ns = 1'000'000'000;
// A walk reads several files of each process: most of what a quiet node costs.
constexpr std::int64_t walk_every_ns = 4'000'000'000, walk_quiet_ns = 15'000'000'000;
constexpr std::int64_t young_ns = 30'000'000'000;

constexpr std::uint64_t first_pid_space = 0xEFFFFFFC;  // PROC_PID_INIT_INO of the kernel

/// Of whom nothing can be said lives.
std::vector<bool> which_live(process_teller& processes, std::vector<process_mark> const& claimed,
                             uid_t owner) {
  std::vector<std::uint32_t> pids;
  for (auto const& p : claimed) pids.push_back(p.pid);
  auto const said = processes.ask(pids, owner != 0);  // root's may be anybody's
  std::vector<bool> out(claimed.size(), true);
  for (std::size_t i = 0; i < claimed.size(); ++i)
    if (said[i].is_said)
      out[i] = said[i].found && is_owned(said[i].found->uid, owner) &&
               abi::is_start(claimed[i].start_ticks, said[i].found->start_ticks);
  return out;
}

/// By what its last census found. A question wakes another thread, so what is used is enough.
segment::life_facts facts_of(job const& j, process_teller& processes) {
  segment::life_facts f;
  auto const& scheduler = j.record.scheduler;
  f.has_process = j.processes != 0;
  f.is_scheduled = scheduler.has_value();
  f.is_held = scheduler && scheduler->is_held;
  if (!is_used(f)) f.has_joiner = processes.may_any_live(j.record.joiners);
  if (!is_used(f)) f.has_step = scheduler && processes.may_any_live(scheduler->steps);
  f.is_damaged = j.is_broken();
  return f;
}

std::uint64_t counted_bytes(job const& j) {
  if (j.is_broken()) return ~std::uint64_t{0};  // nothing can be said
  std::uint64_t sum = 0;
  for (auto const& call : segment::sum(j.memory()).call) sum += call.bytes;
  return sum;
}

}  // namespace

job_watch::job_watch(job_table& jobs, loop_times& times, escape_worker::starter start,
                     runtime::logger& log)
    : jobs_(jobs),
      times_(times),
      heads_([&jobs](auto const& claimed,
                     uid_t owner) { return which_live(jobs.processes(), claimed, owner); },
             segment::own_pid_space()),
      escapes_(std::make_shared<real_proc>(), std::move(start), log, jobs.owners()),
      walked_ns_(now().mono_ns) {}

/// A walk reads all slots and has each process looked up in /proc by another thread. Until the next
/// one it is enough that nobody came and that all who were counted hold their slots and live, for
/// which no file is read. A number that another process got meanwhile shows in the next walk. A job
/// of many is walked.
bool job_watch::is_as_counted(job const& j, std::int64_t now_ns) const {
  auto const known = attached_.find(j.folder);
  if (j.is_broken() || known == attached_.end()) return false;
  counted const& then = known->second;
  auto const& slots = then.heads.slots;
  if (slots.empty()) return false;
  if (now_ns - then.walked_ns >= walk_slots_ns) return false;
  if (j.memory().head.attached_total.load() != then.came) return false;
  return std::all_of(slots.begin(), slots.end(), [&](held_slot const& s) {
    if (abi::process_of(j.memory(), s.index).pid.load() != s.pid) return false;
    return !s.is_ours || kill(static_cast<pid_t>(s.pid), 0) == 0 || errno != ESRCH;
  });
}

/// False: the budget is used up.
bool job_watch::count(job& j, turn& t, unsigned& budget, std::int64_t now_ns) {
  if (t.folder != j.folder) {
    if (is_as_counted(j, now_ns)) {
      j.counted_ns = now_ns;
      return true;
    }
    t.folder = j.folder;
    t.walk = {};
    t.came = j.is_broken() ? 0 : j.memory().head.attached_total.load();
  }
  counted& known = attached_[j.folder];
  if (!j.is_broken() && !heads_.step(j.memory(), j.record.uid, known.dead, budget, t.walk))
    return false;
  j.processes = t.walk.found.processes;
  j.foreign = t.walk.found.foreign_processes;
  known.heads = std::move(t.walk.found);
  if (known.heads.slots.size() > heads_per_step) known.heads.slots = {};  // a job of many is walked
  known.came = t.came;
  known.walked_ns = now_ns;
  t.folder.clear();
  j.life = segment::next_life(j.life, facts_of(j, jobs_.processes()), now_ns);
  j.counted_ns = now_ns;
  t.is_any_unused = t.is_any_unused || j.life.state != segment::life_state::used;
  return true;
}

bool job_watch::count_heads(bool is_fast, std::int64_t now_ns) {
  std::map<uid_t, std::vector<job*>> of_owner;
  std::set<uid_t> all;
  for (auto const& j : jobs_.all()) {
    j->owner = owner_by(jobs_.owners(), j->record.uid);
    of_owner[j->owner].push_back(j.get());
    all.insert(j->owner);
  }
  rounds_.set_owners(all);
  times_.set_owners(all);
  std::erase_if(turns_, [&](auto const& one) { return !all.contains(one.first); });
  unsigned budget = heads_per_step;
  bool is_any_unused = false;
  while (budget != 0) {
    auto const owner = rounds_.next(now_ns, is_fast ? count_every_ns : count_quiet_ns);
    if (!owner) break;
    if (!turns_.contains(*owner)) jobs_.look(of_owner[*owner], segment::glance | segment::slots);
    turn& t = turns_[*owner];
    bool const is_done = std::ranges::all_of(of_owner[*owner], [&](job* j) {
      if (j->folder <= t.after) return true;
      if (!count(*j, t, budget, now_ns)) return false;
      t.after = j->folder;
      return true;
    });
    is_any_unused = is_any_unused || t.is_any_unused;
    if (!is_done) continue;  // the budget is used up
    turns_.erase(*owner);
    rounds_.finish(*owner);
  }
  return is_any_unused;
}

bool job_watch::counts_anew(job& j) {
  auto const known = attached_.find(j.folder);
  if (j.is_broken() || known == attached_.end()) return false;
  if (j.memory().head.attached_total.load() == known->second.came) return false;
  j.life = {};
  return true;
}

void job_watch::forget(job const& j) {
  attached_.erase(j.folder);
  for (auto& [owner, t] : turns_)
    if (t.folder == j.folder) t.folder.clear();  // the next of its name is another job
}

void job_watch::look_for_escapes(site_state const& site, std::int64_t now_ns) {
  if (auto report = escapes_.take(now_ns)) return use(std::move(*report));
  if (!escapes_.is_idle() || (jobs_.all().empty() && jobs_.left().empty())) return;
  bool const is_young = now_ns - came_ns_ < young_ns;
  if (now_ns - walked_ns_ >= (is_young ? walk_every_ns : walk_quiet_ns)) begin_walk(site, now_ns);
}

void job_watch::choose_asked() {
  std::map<uid_t, foreign_turns::claims> all;
  for (auto const& j : jobs_.all())
    if (std::size_t const claims = attached_[j->folder].heads.foreign.size(); claims != 0)
      all[j->owner][j->folder] = claims;
  std::set<std::string> const asked = foreign_turns_.next(all);
  for (auto& [folder, known] : attached_) known.is_asked = asked.contains(folder);
}

void job_watch::begin_walk(site_state const& site, std::int64_t now_ns) {
  walked_ns_ = now_ns;
  watch_list list;
  list.sees_all = segment::own_pid_space() == first_pid_space;
  choose_asked();
  for (auto const& j : jobs_.all()) {
    auto const& terms = j->record.scheduler;
    if (terms && !terms->is_metered) continue;
    counted const& known = attached_[j->folder];
    list.jobs.push_back({j->folder, jobs_.run_dir() + "/jobs/" + j->folder, known.heads.pids,
                         j->record.joiners, known.is_asked ? known.heads.foreign : foreign_claims{},
                         terms ? terms->steps : std::vector<process_mark>{}, j->record.uid});
  }
  for (auto const& [folder, uid] : jobs_.left()) {
    auto const r = jobs_.record_of(folder);
    auto const joiners = r ? r->joiners : std::vector<process_mark>{};
    list.jobs.push_back({folder, jobs_.run_dir() + "/jobs/" + folder, {}, joiners, {}, {}, uid});
  }
  for (auto const& t : site.site().targets) {
    try {
      list.targets.push_back(jobs_.places().find(t.path).path);
    } catch (error const&) {
      list.targets.push_back(t.path);  // not there, or it does not answer
    }
  }
  escapes_.begin(std::move(list), now_ns);
}

/// What a job was counted is read only where it decides.
void job_watch::find_escaped(job& j, std::vector<suspect> const& suspects) {
  std::uint64_t counted = 0;
  auto const judge_all = [&] { j.escapes = judge(suspects, counted); };
  if (!asks_counted(suspects)) return judge_all();
  // Who has no time left keeps what was found before.
  jobs_.look(j, segment::counts);
  if (times_.figures.spend(j.owner, [&] { counted = counted_bytes(j); })) judge_all();
}

void job_watch::use(watch_report report) {
  jobs_.heed_walk(report.inhabited);
  for (auto& [folder, known] : attached_) {
    if (known.heads.foreign_processes != 0) known.walked_ns = -walk_slots_ns;
    if (known.is_asked) known.dead = std::move(report.dead[folder]);
  }
  for (auto const& j : jobs_.all()) {
    auto const suspects = report.suspects.find(j->folder);
    find_escaped(*j, suspects == report.suspects.end() ? std::vector<suspect>{} : suspects->second);
    counted const& known = attached_[j->folder];
    if (!known.is_asked && !known.heads.foreign.empty()) continue;  // as it was
    auto const outside = report.foreign_found.find(j->folder);
    j->foreign_found = outside == report.foreign_found.end() ? 0 : outside->second;
  }
}

}  // namespace sluice::node
