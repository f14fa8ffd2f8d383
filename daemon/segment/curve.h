// SPDX-License-Identifier: Apache-2.0
// What whoever owns the limits of a job does with one of its buckets: a new curve, and who waits
// for the one it has.
#pragma once

#include <cstdint>
#include <functional>

#include "abi/segment.h"
#include "base/foreign.h"

namespace sluice::segment {

/// A new curve for a channel; wakes whom it concerns. One writer at a time.
void write_curve(foreign<abi::segment>& s, unsigned channel, core::curve_settings const& settings,
                 std::int64_t now_ns);

/// The same, by whoever may write there.
using curve_writer = std::function<void(unsigned channel, core::curve_settings const& settings,
                                        std::int64_t now_ns)>;
curve_writer writer_of(foreign<abi::segment>& s);

struct waiting {
  std::uint32_t waiters = 0;
  std::uint64_t units = 0;    // they ask for
  bool sees_everyone = true;  // false: threads without a shard of their own are not seen
};
waiting who_waits(foreign<abi::segment> const& s, unsigned channel);

}  // namespace sluice::segment
