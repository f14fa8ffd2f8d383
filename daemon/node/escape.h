// SPDX-License-Identifier: Apache-2.0
// Which processes of a job do I/O that nobody meters: static programs, programs into which the
// library was not loaded, rings. A process is of a job when it descends from one that is, or when
// its LD_PRELOAD names the job's library (so it is found after its parents have died). The walk
// through /proc takes steps of bounded work and begins anew every few seconds.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "node/job.h"
#include "node/proc.h"

namespace sluice::node {

/// A job as the walk sees it.
struct watched_job {
  std::string folder;
  std::string dir;  // its folder, whole
  std::vector<std::uint32_t> attached;
  std::vector<process_mark> joiners;
};

/// Null: it does not escape.
char const* why_escaped(process_doings const& d, bool is_attached);

class escape_watch {
 public:
  explicit escape_watch(proc const& from) : proc_(from) {}

  bool is_idle() const { return phase_ == phase::idle; }
  void begin(std::vector<watched_job> jobs);
  /// Does a part of the walk. True when it is complete: found() is new.
  bool step();
  /// By folder.
  std::map<std::string, std::vector<escaped>> const& found() const { return found_; }

 private:
  enum class phase { idle, reading, sorting, looking };

  void read_some();
  bool sort_some();
  bool look_some();
  int job_of(std::uint32_t pid);

  proc const& proc_;
  phase phase_ = phase::idle;
  std::vector<watched_job> jobs_;
  std::vector<std::uint32_t> queue_;
  std::map<std::uint32_t, process_facts> facts_;
  std::map<std::uint32_t, int> member_;  // pid -> index into jobs_; -1 of none
  std::set<std::uint32_t> attached_;
  std::size_t at_ = 0;
  std::map<std::string, std::vector<escaped>> growing_, found_;
};

}  // namespace sluice::node
