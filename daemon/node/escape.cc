// SPDX-License-Identifier: Apache-2.0
#include "node/escape.h"

#include "abi/segment.h"

namespace sluice::node {

namespace {

constexpr std::size_t read_per_step = 64, sort_per_step = 32, look_per_step = 4;
constexpr std::size_t most_escaped = 64;  // told of one job
// Starting a program reads some hundred kilobytes; less than that is nobody's concern.
constexpr std::uint64_t few_bytes = 1u << 20, few_calls = 256;
constexpr int none = -1;
// An attached process moves bytes of pipes and of files that nobody controls too: only what goes
// far beyond all that its job was counted is worth a word.
constexpr std::uint64_t many_bytes = 64u << 20, many_mapped = 16u << 20, many_times = 4;

}  // namespace

char const* why_escaped(process_doings const& d, bool is_attached,
                        std::function<std::uint64_t()> const& counted) {
  if (d.has_ring) return "io_uring";
  if (!d.is_readable) return nullptr;
  if (is_attached) {
    if (d.mapped_bytes >= many_mapped) return "moves bytes unseen (mmap)";
    if (!d.has_file || d.bytes < many_bytes) return nullptr;
    return (d.bytes - many_bytes) / many_times > counted()
               ? "moves bytes unseen (direct system calls?)"
               : nullptr;
  }
  if (d.bytes < few_bytes && d.calls < few_calls) return nullptr;
  if (d.is_static) return "static program";
  if (!d.has_library) return "library not loaded";
  return nullptr;  // loaded, and nothing it did was to be metered
}

void escape_watch::begin(std::vector<watched_job> jobs, std::vector<std::string> targets) {
  jobs_ = std::move(jobs);
  targets_ = std::move(targets);
  foreign_.clear();
  asked_.clear();
  seen_.clear();
  growing_foreign_.clear();
  counted_bytes_.clear();
  was_refused_ = false;
  for (int j = 0; j < static_cast<int>(jobs_.size()); ++j)
    for (auto const& p : jobs_[static_cast<std::size_t>(j)].foreign) {
      asked_.insert(p.pid_space);
      foreign_[{p.pid_space, p.inside.pid}] = {j, p.inside.start_ticks};
    }
  facts_.clear();
  member_.clear();
  attached_.clear();
  steps_.clear();
  growing_.clear();
  at_ = 0;
  phase_ = jobs_.empty() ? phase::idle : phase::reading;
  if (jobs_.empty()) {
    found_.clear();
    foreign_found_.clear();
    return;
  }
  queue_ = proc_.pids();
}

bool escape_watch::step() {
  switch (phase_) {
    case phase::idle:
      return false;
    case phase::reading:
      read_some();
      return false;
    case phase::sorting:
      if (sort_some()) phase_ = phase::looking;
      return false;
    case phase::looking:
      break;
  }
  if (!look_some()) return false;
  phase_ = phase::idle;
  foreign_found_ = std::move(growing_foreign_);
  growing_foreign_.clear();
  found_ = std::move(growing_);
  growing_.clear();
  facts_.clear();
  return true;
}

void escape_watch::read_one(std::uint32_t pid) {
  auto f = proc_.facts(pid);
  if (!f) return;
  was_refused_ = was_refused_ || f->pid_space == 0;
  if (asked_.contains(f->pid_space)) {
    seen_.insert(f->pid_space);
    auto const seat = foreign_.find({f->pid_space, proc_.inner_pid(pid)});
    if (seat != foreign_.end() && abi::is_start(seat->second.start_ticks, f->start_ticks)) {
      member_[pid] = seat->second.job;
      attached_.insert(pid);
      ++growing_foreign_[jobs_[static_cast<std::size_t>(seat->second.job)].folder];
    }
  }
  facts_[pid] = std::move(*f);
}

/// The slots were read before the pids were listed, so who lives is in the list. Where we are not
/// shown everybody, only what was seen before can be gone.
void escape_watch::judge_spaces() {
  dead_.clear();
  for (std::uint64_t space : asked_)
    if (!seen_.contains(space) && ((sees_all_ && !was_refused_) || known_.contains(space)))
      dead_.insert(space);
  std::erase_if(known_, [&](std::uint64_t space) { return !asked_.contains(space); });
  known_.insert(seen_.begin(), seen_.end());
}

void escape_watch::read_some() {
  for (std::size_t i = 0; i < read_per_step && at_ < queue_.size(); ++i, ++at_)
    read_one(queue_[at_]);
  if (at_ < queue_.size()) return;
  at_ = 0;
  judge_spaces();
  place_all();
  phase_ = phase::sorting;
}

void escape_watch::place_all() {
  for (int j = 0; j < static_cast<int>(jobs_.size()); ++j) {
    auto const& job = jobs_[static_cast<std::size_t>(j)];
    for (std::uint32_t pid : job.attached) {
      member_[pid] = j;
      attached_.insert(pid);
    }
    auto const place = [&](process_mark const& p) {
      auto const f = facts_.find(p.pid);
      bool const is_there = f != facts_.end() && f->second.start_ticks == p.start_ticks;
      if (is_there) member_[p.pid] = j;
      return is_there;
    };
    for (auto const& p : job.joiners) place(p);
    for (auto const& p : job.steps)
      if (place(p)) steps_.insert(p.pid);
  }
}

/// By descent; a chain that does not end within 64 steps is torn.
int escape_watch::job_of(std::uint32_t pid) {
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

bool escape_watch::sort_some() {
  for (std::size_t i = 0; i < sort_per_step && at_ < queue_.size(); ++i, ++at_) {
    std::uint32_t const pid = queue_[at_];
    auto const f = facts_.find(pid);
    bool const kernel = f == facts_.end() || pid == 2 || f->second.parent == 2;
    if (kernel || job_of(pid) != none) continue;
    std::string const preload = proc_.preload(pid);
    for (std::size_t j = 0; j < jobs_.size() && !preload.empty(); ++j)
      if (preload.find(jobs_[j].dir + "/") != std::string::npos) {
        member_[pid] = static_cast<int>(j);
        break;
      }
  }
  if (at_ < queue_.size()) return false;
  at_ = 0;
  return true;
}

bool escape_watch::look_some() {
  for (std::size_t looked = 0; looked < look_per_step && at_ < queue_.size(); ++at_) {
    std::uint32_t const pid = queue_[at_];
    auto const member = member_.find(pid);
    auto const f = facts_.find(pid);
    if (member == member_.end() || member->second == none || f == facts_.end()) continue;
    if (steps_.contains(pid)) continue;
    ++looked;
    auto& list = growing_[jobs_[static_cast<std::size_t>(member->second)].folder];
    if (list.size() == most_escaped) continue;
    auto const counted = [&, j = member->second] {
      auto const at = counted_bytes_.find(j);
      if (at != counted_bytes_.end()) return at->second;
      return counted_bytes_[j] = counted_(jobs_[static_cast<std::size_t>(j)].folder);
    };
    char const* const why =
        why_escaped(proc_.doings(pid, targets_), attached_.contains(pid), counted);
    if (why != nullptr) list.push_back({pid, f->second.name, why});
  }
  return at_ >= queue_.size();
}

}  // namespace sluice::node
