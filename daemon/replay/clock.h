// SPDX-License-Identifier: Apache-2.0
// The only clock of the replay; everything else is given the time.
#pragma once

#include <cstdint>
#include <ctime>

namespace sluice::replay {

inline std::int64_t ns_of(timespec const& t) {
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

inline timespec timespec_of(std::int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

inline std::int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return ns_of(t);
}

inline std::int64_t unix_ns() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return ns_of(t);
}

inline void sleep_until(std::int64_t monotonic_ns) {
  timespec const t = timespec_of(monotonic_ns);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

}  // namespace sluice::replay
