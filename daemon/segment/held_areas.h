// SPDX-License-Identifier: Apache-2.0
// Keeps the segment of a job and the areas beside it open for writing, so that their owner can take
// no lease on them: the kernel gives none while somebody has the file open so. A lease would keep
// us from cutting back what he lets grow.
// What stays true: a file that is held is held until the end, also when its job is over
// (remains.h). Nothing is read or written here.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/descriptor.h"
#include "segment/cut_back.h"

namespace sluice::segment {

class held_areas {
 public:
  /// Holds those in the folder that are there and not held yet. False: there is a lease on one of
  /// them, which the kernel ends now. It is to be tried again.
  bool hold(std::string const& job_dir, uid_t owner);
  bool any() const {
    return std::any_of(held_.begin(), held_.end(), [](auto const& one) { return bool(one); });
  }

 private:
  // By descriptors, not mappings: to map or unmap a file waits for who punches it. The segment is
  // the last.
  std::array<descriptor, most_areas + 1> held_;
};

}  // namespace sluice::segment
