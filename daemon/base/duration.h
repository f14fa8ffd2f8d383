// SPDX-License-Identifier: Apache-2.0
// Times as people write them: 100ms, 1s, 1.5s, 10min, 2h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

/// Nanoseconds. A number needs its unit: us, ms, s, m or min, h, d. Throws a usage error that
/// begins with `where`.
std::int64_t parse_duration(std::string_view text, std::string const& where);

/// `100ms`, `1.5s`, `10min`: the largest unit in which the number is at least one.
std::string duration_text(std::int64_t ns);

/// Until when something holds that ends at a second of 1970: `until 2026-11-23 15:40:00 (9.5min
/// more)` in local time; 0 is `until it is changed`.
std::string until_text(double until_s, double now_s);

}  // namespace sluice
