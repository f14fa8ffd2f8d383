// SPDX-License-Identifier: Apache-2.0
// Problem: a disk that is limited gives in bursts, and a window that holds one burst more than its
// length has room for tells of a faster disk. Idea: the slope of the count over time, in which the
// ends of the window weigh nothing and its middle weighs most. Three bursts in a window then tell
// the rate to 3 %, where counting is off by 17 %. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::calibrate {

/// How many requests had ended at a time.
struct moment {
  std::int64_t at_ns = 0;
  std::uint64_t ended = 0;
};

/// Per second. Moments are in the order of time; 0 when they say nothing.
double steady_rate(std::vector<moment> const& seen);

}  // namespace sluice::calibrate
