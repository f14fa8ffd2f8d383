// SPDX-License-Identifier: Apache-2.0
// Which processes of a job do I/O that nobody meters: static programs, programs into which the
// library was not loaded, rings, and attached ones that move far more bytes than were counted. A
// process is of a job when it descends from one that is, or when
// its LD_PRELOAD names the job's library (so it is found after its parents have died). The walk
// through /proc takes steps of bounded work and begins anew every few seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "node/census.h"
#include "node/job.h"
#include "node/proc.h"

namespace sluice::node {

/// A job as the walk sees it.
struct watched_job {
  std::string folder;
  std::string dir;  // its folder, whole
  std::vector<std::uint32_t> attached;
  std::vector<process_mark> joiners;
  std::vector<foreign_process> foreign = {};
  std::vector<process_mark> steps = {};  // the scheduler's: all below is the job, they are not
};

/// Null: it does not escape. `counted`: bytes that all processes of its job were metered by; asked
/// only when it matters.
char const* why_escaped(process_doings const& d, bool is_attached,
                        std::function<std::uint64_t()> const& counted);

class escape_watch {
 public:
  /// Bytes counted so far in the job of this folder.
  using counter = std::function<std::uint64_t(std::string const& folder)>;
  /// `sees_all`: pids of every namespace below show in `from`, so what is not there is not.
  escape_watch(proc const& from, counter counted, bool sees_all)
      : proc_(from), counted_(std::move(counted)), sees_all_(sees_all) {}

  bool is_idle() const { return phase_ == phase::idle; }
  /// `targets`: paths of the policy's targets, as the kernel names them.
  void begin(std::vector<watched_job> jobs, std::vector<std::string> targets = {});
  /// Does a part of the walk. True when it is complete: found() is new.
  bool step();
  /// By folder.
  std::map<std::string, std::vector<escaped>> const& found() const { return found_; }
  /// Processes of other pid namespaces that were found in /proc, by folder.
  std::map<std::string, std::uint32_t> const& foreign_found() const { return foreign_found_; }
  /// Pid namespaces of foreign processes in which nobody lives any more.
  std::set<std::uint64_t> const& dead_spaces() const { return dead_; }

 private:
  enum class phase { idle, reading, sorting, looking };

  void read_some();
  void read_one(std::uint32_t pid);
  void place_all();
  void judge_spaces();
  bool sort_some();
  bool look_some();
  int job_of(std::uint32_t pid);

  struct foreign_seat {
    int job;
    std::uint64_t start_ticks;
  };

  proc const& proc_;
  counter counted_;
  bool sees_all_;
  phase phase_ = phase::idle;
  std::vector<watched_job> jobs_;
  std::vector<std::uint32_t> queue_;
  std::map<std::uint32_t, process_facts> facts_;
  std::map<std::uint32_t, int> member_;  // pid -> index into jobs_; -1 of none
  std::set<std::uint32_t> attached_;
  std::set<std::uint32_t> steps_;
  std::vector<std::string> targets_;
  // Asked about in this walk, seen in it, and ever seen.
  std::set<std::uint64_t> asked_, seen_, known_, dead_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, foreign_seat> foreign_;
  std::map<std::string, std::uint32_t> growing_foreign_, foreign_found_;
  std::map<int, std::uint64_t> counted_bytes_;  // by job, as far as asked
  bool was_refused_ = false;  // some process would not say in which namespace it is
  std::size_t at_ = 0;
  std::map<std::string, std::vector<escaped>> growing_, found_;
};

}  // namespace sluice::node
