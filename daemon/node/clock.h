// SPDX-License-Identifier: Apache-2.0
// The one place of the node that reads clocks: both at once, because leases count on CLOCK_BOOTTIME
// and curves on CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <ctime>

#include "node/enforcer.h"

namespace sluice::node {

inline std::int64_t read_clock(clockid_t id) {
  timespec t = {};
  clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * second_ns + t.tv_nsec;
}

/// A lease may only seem to end too early, so the monotonic clock is read first.
inline moment now() {
  std::int64_t const mono_ns = read_clock(CLOCK_MONOTONIC);
  return {read_clock(CLOCK_BOOTTIME), mono_ns};
}

inline std::int64_t unix_s() { return read_clock(CLOCK_REALTIME) / second_ns; }

}  // namespace sluice::node
