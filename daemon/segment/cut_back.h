// SPDX-License-Identifier: Apache-2.0
// Cuts the files of a job back to their size. They belong to its user and lie in RUN, which is
// memory that the whole machine shares: the user could let them grow until it is full.
#pragma once

#include <string>

namespace sluice::segment {

/// Cuts the files in the folder of a job that this version made back to their sizes. True when one
/// had grown.
bool cut_back(std::string const& job_dir);

}  // namespace sluice::segment
