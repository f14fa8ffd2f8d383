// SPDX-License-Identifier: Apache-2.0
// The control plane counts milli-tokens per second, the buckets units per nanosecond with 40
// fractional bits. Here one is converted to the other. Nothing overflows: a value that is too large
// becomes the largest one, which limits nobody.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/durations.h"
#include "core/ruleset.h"
#include "core/service_curve.h"
#include "lease/message.h"
#include "policy/supply.h"

namespace sluice::node {

using core::unit_kind;
using lease::rate;

inline constexpr std::int64_t burst_ns =
    20'000'000;  // what idle time is worth on a granted channel

using policy::unlimited;

inline std::uint64_t q40_of(unit_kind unit, rate r) {
  return policy::rate_q40_of(std::min(r, unlimited(unit)), unit);
}

constexpr rate rate_of_q40(unit_kind unit, std::uint64_t q40) {
  core::u128 const milli = (core::u128(q40) * 1'000'000'000'000 >> 40) / core::token_units(unit);
  return milli > unlimited(unit) ? unlimited(unit) : static_cast<rate>(milli);
}

/// Milli-tokens in a number of bucket units; saturates.
constexpr std::uint64_t milli_of_units(unit_kind unit, std::uint64_t units) {
  core::u128 const milli = core::u128(units) * 1000 / core::token_units(unit);
  return milli > core::max_cap_units ? core::max_cap_units : static_cast<std::uint64_t>(milli);
}

/// Milli-tokens per second when so many went by in a span.
constexpr rate rate_over(std::uint64_t milli, std::int64_t span_ns) {
  if (span_ns <= 0) return 0;
  core::u128 const r = core::u128(milli) * second_ns / static_cast<std::uint64_t>(span_ns);
  return r > core::max_cap_units ? core::max_cap_units : static_cast<rate>(r);
}

/// As people read it: tokens per second.
constexpr double tokens(rate r) { return static_cast<double>(r) / 1000; }

/// amount * part / whole, rounded down; 0 when whole is 0.
constexpr rate portion(rate amount, rate part, rate whole) {
  return whole == 0 ? 0 : static_cast<rate>(core::u128(amount) * part / whole);
}

}  // namespace sluice::node
