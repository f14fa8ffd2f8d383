// SPDX-License-Identifier: Apache-2.0
// The files of a job belong to its user and lie in RUN, which is memory that the whole machine
// shares: he could let them grow until it is full.
#pragma once

#include <string>

namespace sluice::segment {

/// Cuts the files in the folder of a job that this version made back to their sizes. True when one
/// had grown.
bool cut_back(std::string const& job_dir);

}  // namespace sluice::segment
