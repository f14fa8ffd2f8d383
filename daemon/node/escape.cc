// SPDX-License-Identifier: Apache-2.0
#include "node/escape.h"

namespace sluice::node {

namespace {

constexpr std::size_t read_per_step = 64, sort_per_step = 32, look_per_step = 4;
constexpr std::size_t most_escaped = 64;  // told of one job
// Starting a program reads some hundred kilobytes; less than that is nobody's concern.
constexpr std::uint64_t few_bytes = 1u << 20, few_calls = 256;
constexpr int none = -1;

}  // namespace

char const* why_escaped(process_doings const& d, bool is_attached) {
  if (d.has_ring) return "io_uring";
  if (is_attached || !d.is_readable) return nullptr;
  if (d.bytes < few_bytes && d.calls < few_calls) return nullptr;
  if (d.is_static) return "static program";
  if (!d.has_library) return "library not loaded";
  return nullptr;  // loaded, and nothing it did was to be metered
}

void escape_watch::begin(std::vector<watched_job> jobs) {
  jobs_ = std::move(jobs);
  facts_.clear();
  member_.clear();
  attached_.clear();
  growing_.clear();
  at_ = 0;
  phase_ = jobs_.empty() ? phase::idle : phase::reading;
  if (jobs_.empty()) {
    found_.clear();
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
  found_ = std::move(growing_);
  growing_.clear();
  facts_.clear();
  return true;
}

void escape_watch::read_some() {
  for (std::size_t i = 0; i < read_per_step && at_ < queue_.size(); ++i, ++at_)
    if (auto f = proc_.facts(queue_[at_])) facts_[queue_[at_]] = std::move(*f);
  if (at_ < queue_.size()) return;
  at_ = 0;
  for (int j = 0; j < static_cast<int>(jobs_.size()); ++j) {
    auto const& job = jobs_[static_cast<std::size_t>(j)];
    for (std::uint32_t pid : job.attached) {
      member_[pid] = j;
      attached_.insert(pid);
    }
    for (auto const& p : job.joiners)
      if (auto const f = facts_.find(p.pid);
          f != facts_.end() && f->second.start_ticks == p.start_ticks)
        member_[p.pid] = j;
  }
  phase_ = phase::sorting;
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
    ++looked;
    auto& list = growing_[jobs_[static_cast<std::size_t>(member->second)].folder];
    if (list.size() == most_escaped) continue;
    char const* const why = why_escaped(proc_.doings(pid), attached_.contains(pid));
    if (why != nullptr) list.push_back({pid, f->second.name, why});
  }
  return at_ >= queue_.size();
}

}  // namespace sluice::node
