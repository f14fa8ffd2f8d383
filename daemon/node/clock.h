// SPDX-License-Identifier: Apache-2.0
// The clocks of the node: both at once, because leases count on CLOCK_BOOTTIME
// and curves on CLOCK_MONOTONIC.
#pragma once

#include "control/clock.h"
#include "node/enforcer.h"

namespace sluice::node {

/// A lease may only seem to end too early, so the monotonic clock is read first.
inline moment now() {
  std::int64_t const mono_ns = control::steady_ns();
  return {control::read_clock(CLOCK_BOOTTIME), mono_ns};
}

using control::deadline_s;
using control::unix_s;

}  // namespace sluice::node
