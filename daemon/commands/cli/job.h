// SPDX-License-Identifier: Apache-2.0
// The job that a verb is about, found by its segment.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "commands/cli/options.h"
#include "segment/mapping.h"

namespace sluice::cli {

struct open_job {
  std::string run_dir;
  std::string name;  // of its directory
  segment::mapping segment;
};

/// A job that runs without a daemon. Throws a usage error with a suggestion when there is no such
/// job.
open_job find_job(global_options const& global, std::string const& name);

/// The same, or one that a daemon made and whose segment we may read. None when there is no such.
std::optional<open_job> find_readable_job(global_options const& global, std::string const& name);

struct segment_file {
  std::string path;
  uid_t owner;
};

/// The segments of all jobs, a daemon's too; some of them may not be ours to read.
std::vector<segment_file> segments_in_reach(global_options const& global);

}  // namespace sluice::cli
