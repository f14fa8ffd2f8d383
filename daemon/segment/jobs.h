// SPDX-License-Identifier: Apache-2.0
// Lists the jobs, tells which of them live, and removes the dead ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/segment.h"
#include "base/foreign.h"
#include "base/foreign_file.h"
#include "segment/job_life.h"

namespace sluice::segment {

/// An attached process that is still the one that attached.
struct live_process {
  std::uint32_t slot;
  std::uint32_t pid;  // 0: of another pid namespace, so it cannot be looked at from here
  std::string name;
};

/// The inode of our pid namespace; pids in slots of other ones mean nothing here.
std::uint64_t own_pid_space();

/// `owner`: the user whose they must be, or any_owner. His segment may name anybody's.
std::vector<live_process> live_processes(foreign<abi::segment> const& s,
                                         std::int64_t owner = any_owner);

/// What the segment alone says: its processes, and the `sluice run` that made it.
life_facts facts_of(foreign<abi::segment> const& s);
inline bool is_live(foreign<abi::segment> const& s) { return is_used(facts_of(s)); }

/// Names of jobs, sorted.
std::vector<std::string> list_jobs(std::string const& run_dir);

void remove_job(std::string const& run_dir, std::string const& job);

enum class collector : std::uint8_t { command, daemon_at_start, beside_daemon };

/// Removes dead jobs and half-made ones whose maker is dead, or had our pid. Jobs of a daemon are
/// a daemon's to remove: it knows who else has joined. Call with the run directory locked.
void collect_garbage(std::string const& run_dir, collector who);
/// Locks it for that, unless somebody else has: for the daemon itself, which must not wait.
void collect_garbage_if_free(std::string const& run_dir);

}  // namespace sluice::segment
