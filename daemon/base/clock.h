// SPDX-License-Identifier: Apache-2.0
// The place where our programs read their clocks. Code that decides gets the time as an argument.
#pragma once

#include <cstdint>
#include <ctime>

namespace sluice {

constexpr std::int64_t ns_of(timespec const& t) {
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

constexpr timespec timespec_of(std::int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

/// From the kernel's own function, which it maps into every process: `clock_gettime` may be that of
/// a preloaded library which shows programs another date, or a clock that stands still.
std::int64_t read_clock(clockid_t id);

inline std::int64_t steady_ns() { return read_clock(CLOCK_MONOTONIC); }
/// The same for those who count without a sign.
inline std::uint64_t steady_count_ns() { return static_cast<std::uint64_t>(steady_ns()); }
/// Leases count on this one: a suspended machine must not stretch them.
inline std::int64_t boot_ns() { return read_clock(CLOCK_BOOTTIME); }
inline std::int64_t unix_ns() { return read_clock(CLOCK_REALTIME); }
inline std::int64_t unix_s() { return unix_ns() / 1'000'000'000; }

/// With its fraction: what lasts seconds ends neither early nor late.
inline double unix_exact_s() { return static_cast<double>(unix_ns()) / 1e9; }

/// One moment on the clock of people, which is set, and on that of the machine, which only counts.
struct dated_moment {
  double unix_s = 0;  // CLOCK_REALTIME
  double boot_s = 0;  // CLOCK_BOOTTIME
};

inline dated_moment dated_now() { return {unix_exact_s(), static_cast<double>(boot_ns()) / 1e9}; }

/// Until steady_ns() is `at_ns`, or a signal comes.
inline void sleep_until(std::int64_t at_ns) {
  timespec const t = timespec_of(at_ns);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

}  // namespace sluice
