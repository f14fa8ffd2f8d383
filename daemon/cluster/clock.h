// SPDX-License-Identifier: Apache-2.0
// The clocks of the controller. Leases count on CLOCK_BOOTTIME, because a
// suspended machine must not stretch them.
#pragma once

#include "control/clock.h"

namespace sluice::cluster {

using control::deadline_s;
using control::steady_ns;
using control::unix_s;

inline std::int64_t boot_ns() { return control::read_clock(CLOCK_BOOTTIME); }

}  // namespace sluice::cluster
