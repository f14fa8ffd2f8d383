// SPDX-License-Identifier: Apache-2.0
// From rates to costs. A virtual IOP is a small random request, so a request costs the rate of
// those, divided by its own. Pure, and of use while a calibration still goes on.
#pragma once

#include <vector>

#include "commands/calibrate/plan.h"
#include "commands/calibrate/sample.h"
#include "policy/cost_file.h"

namespace sluice::calibrate {

/// A spread above it: two calibrations may differ by that much.
inline constexpr double most_spread = 0.10;

/// The rounds of a step as one.
struct seen {
  policy::measured how;
  std::vector<double> per_s;  // of each group, the median of the rounds
  bool is_thin = false;       // in one of them a thread ended too few requests
  unsigned rounds = 0;        // 0: not measured, or the file system cannot do it
};
bool is_stable(seen const& s);
seen seen_of(step const& s, std::vector<sample> const& samples);

/// All that is known so far; a step that was not measured is not in it. `max_vops` is 0 when no
/// curve has a point.
policy::cost_file fit(std::vector<step> const& plan, std::vector<sample> const& samples);

/// The cost of an aligned request of a size that the curves have; 0 when they do not.
double cost_of(policy::cost_file const& c, work const& w);

}  // namespace sluice::calibrate
