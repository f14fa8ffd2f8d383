// SPDX-License-Identifier: Apache-2.0
// Finds processes of a job whose I/O is not metered: static programs, programs into which the
// library was not loaded, rings, and attached ones that move far more bytes than were counted. A
// process is of a job when it descends from one that is, or when its LD_PRELOAD names the job's
// library (so it is found after its parents have died). One walk through a /proc, from a list to a
// report; a read can hang, so escape_worker.h runs it beside the loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/owners.h"
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
  foreign_claims foreign = {};           // that are to be asked for
  std::vector<process_mark> steps = {};  // the scheduler's: all below is the job, they are not
  std::uint32_t uid = 0;                 // whose it is: no process of another is in it; root's any
};

/// Processes that held up an earlier walk: their memory and files are left alone.
struct avoided_processes {
  std::set<process_mark> marks;
  std::set<uid_t> owners;
  owner_lookup owner_of = {};
};

/// What processes had moved before what they are now, by read(2) and write(2): it is kept across
/// exec, and is not what escapes.
struct moved_before {
  std::uint64_t bytes = 0, calls = 0;
};
using moved_by_process = std::map<process_mark, moved_before>;

struct watch_list {
  std::vector<watched_job> jobs;
  std::vector<std::string> targets;  // paths of the policy's targets, as the kernel names them
  bool sees_all = false;  // pids of every namespace below show, so what is not there is not
  std::set<std::uint64_t> known_spaces;  // from the report before
  avoided_processes avoided;
  moved_by_process moved = {};  // from the report before
};

/// A process that seems to escape; judge() decides.
struct suspect {
  std::uint32_t pid = 0;
  std::string name;
  process_doings doings;
  bool is_attached = false;
};

struct watch_report {
  std::map<std::string, std::vector<suspect>> suspects;  // by folder
  /// Folders of jobs that have a process, or may have one.
  std::set<std::string> inhabited;
  /// Processes of other pid namespaces that were found in /proc, by folder.
  std::map<std::string, std::uint32_t> foreign_found;
  /// Foreign processes that a job claims, and that are not there or not its user's; sorted.
  std::map<std::string, foreign_claims> dead;  // by folder
  std::set<std::uint64_t> known_spaces;
  moved_by_process moved;
};

/// Where a walk is, for whoever waits for it.
struct walk_progress {
  std::atomic<std::uint64_t> steps = 0;
  std::atomic<std::uint32_t> pid = 0, uid = 0;  // the process it looks at
  std::atomic<std::uint64_t> start_ticks = 0;
};

watch_report walk(proc const& from, watch_list const& list, walk_progress& progress);

/// Null: it does not escape. `counted`: bytes that all processes of its job were metered by.
char const* why_escaped(process_doings const& d, bool is_attached, std::uint64_t counted);

/// Whether the word of one of them depends on `counted`.
bool asks_counted(std::vector<suspect> const& suspects);

/// Those of the suspects that escape, as many as are told of one job.
std::vector<escaped> judge(std::vector<suspect> const& suspects, std::uint64_t counted);

}  // namespace sluice::node
