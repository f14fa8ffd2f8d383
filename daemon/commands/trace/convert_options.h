// SPDX-License-Identifier: Apache-2.0
// The input of a conversion, and its options.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "commands/trace/trace.h"

namespace sluice::trace {

using files = std::vector<std::string>;

struct convert_options {
  double interval_s = 0;  // 0: 1 s, or what the source says
  std::string job;        // all belongs to this job
  std::string jobs_by;    // or to one named by this, see formats.def; empty: no jobs
  std::string below;      // only what is done to files below this directory; empty: any
  bool unordered = false;
  std::size_t intervals_max = most_intervals;
};

}  // namespace sluice::trace
