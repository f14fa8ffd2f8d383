// SPDX-License-Identifier: Apache-2.0
// Writes the curves of granted channels. The stage follows a curve by itself through the end of
// the lease and the return of the escrow, so a daemon that dies prolongs nothing.
// What stays true: while shares move between jobs their sum never exceeds the larger of before and
// after in any phase: falling rates are written first.
#pragma once

#include <span>

#include "node/rates.h"
#include "node/share_out.h"
#include "segment/curve.h"

namespace sluice::node {

/// When the phases change, CLOCK_MONOTONIC; the same for all jobs of the node on one supply.
struct phase_times {
  std::int64_t lease_end_ns = 0;  // 0: `now` lasts for ever
  std::int64_t own_at_ns = 0;     // 0: never
  bool open = false;              // after the lease calls pass uncharged
};

core::curve_settings settings_of(unit_kind unit, phases const& p, phase_times const& t);

/// One channel whose curve is to change.
struct curve_change {
  segment::curve_writer write;
  unsigned channel;
  unit_kind unit;
  phases* in_force;  // updated
  phases wanted;
  bool is_paused = false;  // stays closed after the lease
};

/// All channels of one supply on this node. First what falls in any phase; true: something does.
bool write_falling(std::span<curve_change> changes, phase_times const& t, std::int64_t now_ns);
void write_wanted(std::span<curve_change> changes, phase_times const& t, std::int64_t now_ns);

}  // namespace sluice::node
