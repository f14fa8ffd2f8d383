// SPDX-License-Identifier: Apache-2.0
// A capacity that nobody has to guess: `{"auto": true, "min": …, "max": …, "latency": "5ms p90"}`.
// The daemon that divides it steers it by the time that calls take (policies/steer.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policy/limit.h"

namespace sluice::policy {

struct auto_capacity {
  std::optional<rate> least;   // none: the reservations, or a hundredth of the largest
  std::int64_t wanted_ns = 0;  // what a call may take
  std::uint32_t slow_ppm = 0;  // of the calls may take longer, in millionths
  bool is_shadow = false;      // only told; the largest is in force
};

/// `at most 10 % of the calls may take longer than 5ms`.
std::string latency_in_words(auto_capacity const& a);

}  // namespace sluice::policy
