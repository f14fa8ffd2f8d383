// SPDX-License-Identifier: Apache-2.0
// The job a verb speaks about.
#pragma once

#include <string>

#include "cli/options.h"
#include "segment/segment_file.h"

namespace sluice::cli {

struct open_job {
  std::string run_dir;
  std::string name;
  segment::mapping segment;
};

/// Throws a usage error with a suggestion when there is no such job.
open_job find_job(global_options const& global, std::string const& name);

}  // namespace sluice::cli
