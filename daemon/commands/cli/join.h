// SPDX-License-Identifier: Apache-2.0
// Joining a job: with the node's daemon if there is one, else alone. A daemon that is dead, hung or
// broken costs at most a line of warning: the program runs as it would without one.
#pragma once

#include <string>
#include <vector>

#include "commands/cli/options.h"
#include "policy/background.h"

namespace sluice::cli {

/// A job made or joined for this run.
struct membership {
  bool is_there() const { return !segment.empty(); }  // false: there was no place for a segment
  std::string job;
  std::string preload;  // what LD_PRELOAD names
  std::string segment;  // path of the shared memory
  std::string run_dir;  // empty: the daemon made the job and removes it
  std::vector<policy::background_terms> backgrounds = {};  // that we hold back: we made the job
  std::uint64_t holder_before = 0;  // joined: who must be alive for the job to be so
};

/// Throws when what was asked is wrong or refused.
membership enter(global_options const& global, run_options const& options);

/// Removes the job unless somebody else is still in it, or it is the daemon's. What fails is told
/// and changes nothing: how the program ended counts.
void leave(membership const& m) noexcept;

}  // namespace sluice::cli
