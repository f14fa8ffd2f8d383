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
#include <memory>
#include <string>

#include "segment/cut_back.h"

namespace sluice::segment {

/// By a mapping of one page each, which needs no descriptor.
class held_areas {
 public:
  /// Holds those in the folder that are there and not held yet. False: there is a lease on one of
  /// them, which the kernel ends now. It is to be tried again.
  bool hold(std::string const& job_dir, uid_t owner);
  bool any() const {
    return std::any_of(held_.begin(), held_.end(), [](auto const& one) { return one != nullptr; });
  }

 private:
  struct unmap {
    void operator()(void* at) const;
  };
  std::array<std::unique_ptr<void, unmap>, most_areas + 1> held_;  // the segment is the last
};

}  // namespace sluice::segment
