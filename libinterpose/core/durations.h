// SPDX-License-Identifier: Apache-2.0
// Units of time, in nanoseconds: what all clocks here count.
#pragma once

#include <cstdint>

namespace sluice {

inline constexpr std::int64_t us_ns = 1'000;
inline constexpr std::int64_t ms_ns = 1'000 * us_ns;
inline constexpr std::int64_t second_ns = 1'000 * ms_ns;
inline constexpr std::int64_t minute_ns = 60 * second_ns;

}  // namespace sluice
