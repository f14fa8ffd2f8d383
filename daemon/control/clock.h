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

/// The first whole second at which `for_s` seconds have passed: nothing ends early.
constexpr std::int64_t deadline_s(std::int64_t realtime_ns, std::int64_t for_s) {
  return (realtime_ns + 999'999'999) / 1'000'000'000 + for_s;
}

inline std::int64_t deadline_s(std::int64_t for_s) {
  return deadline_s(read_clock(CLOCK_REALTIME), for_s);
}

}  // namespace sluice::control
