// SPDX-License-Identifier: Apache-2.0
// The clocks of the node: both at once, because leases count on CLOCK_BOOTTIME and curves on
// CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace sluice::node {

/// The same moment on both clocks.
struct moment {
  std::int64_t boot_ns = 0;
  std::int64_t mono_ns = 0;
  std::int64_t mono_of(std::int64_t boot) const { return boot - boot_ns + mono_ns; }
};

/// A lease may only seem to end too early, so the monotonic clock is read first.
inline moment now() {
  std::int64_t const mono_ns = steady_ns();
  return {boot_ns(), mono_ns};
}

}  // namespace sluice::node
