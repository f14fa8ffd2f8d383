// SPDX-License-Identifier: Apache-2.0
// The one place of the controller that reads clocks. Leases count on CLOCK_BOOTTIME, because a
// suspended machine must not stretch them.
#pragma once

#include <cstdint>
#include <ctime>

namespace sluice::cluster {

inline std::int64_t read_clock(clockid_t id) {
  timespec t = {};
  clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

inline std::int64_t boot_ns() { return read_clock(CLOCK_BOOTTIME); }
inline std::int64_t steady_ns() { return read_clock(CLOCK_MONOTONIC); }
inline std::int64_t unix_s() { return read_clock(CLOCK_REALTIME) / 1'000'000'000; }

}  // namespace sluice::cluster
