// SPDX-License-Identifier: Apache-2.0
// Which jobs are there, which of them live, and clearing away the dead ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/segment.h"

namespace sluice::segment {

/// An attached process that is still the one that attached.
struct live_process {
  std::uint32_t slot;
  std::uint32_t pid;  // 0: of another pid namespace, so it cannot be looked at from here
  std::string name;
};

/// When a process began, field 22 of /proc/PID/stat: with the pid an identity. 0: there is none, or
/// it is a zombie.
std::uint64_t start_ticks(std::uint32_t pid);

/// The inode of our pid namespace; pids in slots of other ones mean nothing here.
std::uint64_t own_pid_space();

std::vector<live_process> live_processes(abi::segment const& s);

/// A process of the job or the `sluice run` that made it is alive.
bool is_live(abi::segment const& s);

/// Names of jobs, sorted.
std::vector<std::string> list_jobs(std::string const& run_dir);

void remove_job(std::string const& run_dir, std::string const& job);

/// Removes dead jobs and half-made ones whose maker is dead; of a daemon that lives only those that
/// are not its own. Call with the run directory locked.
void collect_garbage(std::string const& run_dir, bool has_daemon = false);
/// Locks it for that, unless somebody else has: for the daemon itself, which must not wait.
void collect_garbage_if_free(std::string const& run_dir);

}  // namespace sluice::segment
