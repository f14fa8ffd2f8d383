// SPDX-License-Identifier: Apache-2.0
#include "node/escape_walk.h"

#include <algorithm>

#include "abi/segment.h"

namespace sluice::node {

namespace {

constexpr std::size_t most_escaped = 64;     // told of one job
constexpr std::size_t most_suspects = 1024;  // of one job
// Starting a program reads some hundred kilobytes; less than that is nobody's concern.
constexpr std::uint64_t few_bytes = 1u << 20, few_calls = 256;
constexpr int none = -1;
// An attached process moves bytes of pipes and of files that nobody controls too: only what goes
// far beyond all that its job was counted is worth a word.
constexpr std::uint64_t many_bytes = 64u << 20, many_mapped = 16u << 20, many_times = 4;

class walker {
 public:
  walker(proc const& from, watch_list const& list, walk_progress& progress)
      : proc_(from), list_(list), progress_(progress) {}

  watch_report run() {
    for (int j = 0; j < job_count(); ++j)
      for (auto const& p : job_of(j).foreign) {
        asked_.insert(p.pid_space);
        claims_[{p.pid_space, p.inside.pid}].push_back({j, p.inside.start_ticks});
      }
    pids_ = proc_.pids();
    for (std::uint32_t pid : pids_) read(pid);
    judge_foreign();
    for (int j = 0; j < job_count(); ++j) place(j);
    for (std::uint32_t pid : pids_) find_job(pid);
    for (auto const& [pid, j] : member_)
      if (facts_.contains(pid)) out_.inhabited.insert(job_of(j).folder);
    for (std::uint32_t pid : pids_) look(pid);
    return std::move(out_);
  }

 private:
  struct claim {
    int job;
    std::uint64_t start_ticks;
    bool is_there = false;
  };

  int job_count() const { return static_cast<int>(list_.jobs.size()); }
  watched_job const& job_of(int j) const { return list_.jobs[static_cast<std::size_t>(j)]; }

  void read(std::uint32_t pid) {
    progress_.steps.fetch_add(1, std::memory_order_relaxed);
    auto f = proc_.facts(pid);
    if (!f) return;
    if (f->pid_space == 0) refused_uids_.insert(proc_.inside(pid).uid);
    if (asked_.contains(f->pid_space)) read_foreign(*f);
    facts_[pid] = std::move(*f);
  }

  /// Anybody may claim a process in his slots; it is in the job of who owns it.
  void read_foreign(process_facts const& f) {
    seen_.insert(f.pid_space);
    process_inside const inside = proc_.inside(f.pid);
    auto const found = claims_.find({f.pid_space, inside.pid});
    if (found == claims_.end()) return;
    for (claim& c : found->second) {
      if (!is_owned(inside.uid, job_of(c.job).uid)) continue;
      c.is_there = true;
      if (member_.contains(f.pid) || !abi::is_start(c.start_ticks, f.start_ticks)) continue;
      member_[f.pid] = c.job;
      attached_.insert(f.pid);
      ++out_.foreign_found[job_of(c.job).folder];
    }
  }

  /// The slots were read before the pids were listed, so who lives is in the list. Where we are not
  /// shown everybody, only what was seen before can be gone. A process that would not say where it
  /// is may be any of its user's.
  void judge_foreign() {
    out_.known_spaces = seen_;
    for (std::uint64_t space : asked_)
      if (list_.known_spaces.contains(space)) out_.known_spaces.insert(space);
    for (auto const& [where, claims] : claims_) {
      bool const is_seen = seen_.contains(where.first);
      bool const is_gone = !is_seen && list_.known_spaces.contains(where.first);
      for (claim const& c : claims) {
        progress_.steps.fetch_add(1, std::memory_order_relaxed);
        std::uint32_t const uid = job_of(c.job).uid;
        bool const may_hide = uid == 0 ? !refused_uids_.empty() : refused_uids_.contains(uid);
        bool const is_shown = (list_.sees_all || is_seen) && !may_hide;
        if (!c.is_there && (is_gone || is_shown))
          out_.dead[job_of(c.job).folder].push_back({where.first, {where.second, c.start_ticks}});
      }
    }
    for (auto& [folder, gone] : out_.dead) std::ranges::sort(gone);
  }

  void place(int j) {
    for (std::uint32_t pid : job_of(j).attached) {
      member_[pid] = j;
      attached_.insert(pid);
    }
    auto const put = [&](process_mark const& p) {
      auto const f = facts_.find(p.pid);
      bool const is_there =
          f != facts_.end() && abi::is_start(p.start_ticks, f->second.start_ticks);
      if (is_there) member_[p.pid] = j;
      return is_there;
    };
    // The number of a joiner may be another user's by now, and so may its start have been.
    for (auto const& p : job_of(j).joiners) {
      auto const f = facts_.find(p.pid);
      if (f == facts_.end()) continue;
      if (!goes_near(f->second) || is_owned(proc_.inside(p.pid).uid, job_of(j).uid))
        if (put(p)) joiners_.insert(p.pid);
    }
    for (auto const& p : job_of(j).steps)
      if (put(p)) steps_.insert(p.pid);
  }

  /// By descent; a chain that does not end within 64 steps is torn.
  int by_descent(std::uint32_t pid) {
    std::vector<std::uint32_t> chain;
    int found = none;
    for (int depth = 0; depth < 64 && pid > 1; ++depth) {
      if (auto const known = member_.find(pid); known != member_.end()) {
        found = known->second;
        break;
      }
      chain.push_back(pid);
      auto const f = facts_.find(pid);
      if (f == facts_.end()) break;
      pid = f->second.parent;
    }
    if (found != none)
      for (std::uint32_t p : chain) member_[p] = found;
    return found;
  }

  void find_job(std::uint32_t pid) {
    auto const f = facts_.find(pid);
    bool const kernel = f == facts_.end() || pid == 2 || f->second.parent == 2;
    if (kernel || by_descent(pid) != none) return;
    if (!goes_near(f->second)) return may_be_in_any(f->second.uid);
    // Anybody may write a job's library into his environment.
    std::string const preload = proc_.preload(pid);
    std::uint32_t const uid = preload.empty() ? no_uid : proc_.inside(pid).uid;
    for (int j = 0; j < job_count() && !preload.empty(); ++j)
      if (uid == job_of(j).uid && preload.find(job_of(j).dir + "/") != std::string::npos) {
        member_[pid] = j;
        break;
      }
  }

  void may_be_in_any(std::uint32_t uid) {
    for (watched_job const& j : list_.jobs)
      if (j.uid == uid) out_.inhabited.insert(j.folder);
  }

  void look(std::uint32_t pid) {
    auto const member = member_.find(pid);
    auto const f = facts_.find(pid);
    if (member == member_.end() || f == facts_.end() || steps_.contains(pid)) return;
    auto& found = out_.suspects[job_of(member->second).folder];
    if (found.size() == most_suspects) return;
    process_doings d;
    d.is_stuck = !goes_near(f->second);
    if (!d.is_stuck) d = proc_.doings(pid, list_.targets);
    // The slot of a program keeps the number of the one that it became, which may have no library.
    bool const has_lost_it = d.is_mapped && !d.has_library;
    bool const is_attached = attached_.contains(pid) && !has_lost_it;
    leave_out_moved(f->second, is_attached, d);
    if (why_escaped(d, is_attached, 0) != nullptr)
      found.push_back({pid, f->second.name, d, is_attached});
  }

  /// What it moved while it was attached was metered. A `sluice run` that waits is known by its
  /// name alone, which anybody may have: all that it moves after the first look counts.
  void leave_out_moved(process_facts const& f, bool is_attached, process_doings& d) {
    process_mark const mark = {f.pid, f.start_ticks};
    auto const known = list_.moved.find(mark);
    bool const is_new = known == list_.moved.end();
    if (!is_new) out_.moved.insert(*known);
    if (!d.is_readable) return;
    bool const waits = joiners_.contains(f.pid) && f.name == "sluice";
    if (is_attached || (is_new && waits)) out_.moved[mark] = {d.bytes, d.calls};
    auto const before = out_.moved.find(mark);
    if (is_attached || before == out_.moved.end()) return;
    d.bytes -= std::min(d.bytes, before->second.bytes);
    d.calls -= std::min(d.calls, before->second.calls);
  }

  /// From here on reading of it may hang. False: it is not read.
  bool goes_near(process_facts const& f) {
    avoided_processes const& no = list_.avoided;
    bool const is_avoided =
        no.marks.contains({f.pid, f.start_ticks}) ||
        (!no.owners.empty() && no.owners.contains(owner_by(no.owner_of, f.uid)));
    progress_.pid.store(f.pid, std::memory_order_relaxed);
    progress_.uid.store(f.uid, std::memory_order_relaxed);
    progress_.start_ticks.store(f.start_ticks, std::memory_order_relaxed);
    progress_.steps.fetch_add(1, std::memory_order_release);
    return !is_avoided;
  }

  proc const& proc_;
  watch_list const& list_;
  walk_progress& progress_;
  std::vector<std::uint32_t> pids_;
  std::map<std::uint32_t, process_facts> facts_;
  std::map<std::uint32_t, int> member_;  // pid -> index of the job
  std::set<std::uint32_t> attached_, joiners_, steps_;
  std::set<std::uint64_t> asked_, seen_;  // pid namespaces
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<claim>> claims_;
  std::set<std::uint32_t> refused_uids_;  // of processes that would not say where they are
  watch_report out_;
};

}  // namespace

watch_report walk(proc const& from, watch_list const& list, walk_progress& progress) {
  return walker(from, list, progress).run();
}

char const* why_escaped(process_doings const& d, bool is_attached, std::uint64_t counted) {
  if (d.is_stuck) return "cannot be looked at: its memory or files do not answer";
  if (d.has_ring) return "io_uring";
  if (!d.is_readable) return nullptr;
  if (is_attached) {
    if (d.mapped_bytes >= many_mapped) return "moves bytes unseen (mmap)";
    if (!d.has_file || d.bytes < many_bytes) return nullptr;
    return (d.bytes - many_bytes) / many_times > counted
               ? "moves bytes unseen (direct system calls?)"
               : nullptr;
  }
  if (d.bytes < few_bytes && d.calls < few_calls) return nullptr;
  if (d.is_static) return "static program";
  if (!d.has_library) return "library not loaded";
  return nullptr;  // loaded, and nothing it did was to be metered
}

bool asks_counted(std::vector<suspect> const& suspects) {
  return std::ranges::any_of(suspects, [](suspect const& s) {
    return why_escaped(s.doings, s.is_attached, 0) !=
           why_escaped(s.doings, s.is_attached, ~std::uint64_t{0});
  });
}

std::vector<escaped> judge(std::vector<suspect> const& suspects, std::uint64_t counted) {
  std::vector<escaped> out;
  for (auto const& s : suspects) {
    char const* const why = why_escaped(s.doings, s.is_attached, counted);
    if (why != nullptr) out.push_back({s.pid, s.name, why});
    if (out.size() == most_escaped) break;
  }
  return out;
}

}  // namespace sluice::node
