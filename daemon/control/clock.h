// SPDX-License-Identifier: Apache-2.0
// Where a daemon reads its clocks; everything that decides is told the time.
#pragma once

#include <cstdint>
#include <ctime>

namespace sluice::control {

/// Nanoseconds of CLOCK_MONOTONIC, CLOCK_BOOTTIME or CLOCK_REALTIME.
inline std::int64_t read_clock(clockid_t id) {
  timespec t = {};
  clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

inline std::int64_t steady_ns() { return read_clock(CLOCK_MONOTONIC); }
inline std::int64_t unix_s() { return read_clock(CLOCK_REALTIME) / 1'000'000'000; }

}  // namespace sluice::control
