// SPDX-License-Identifier: Apache-2.0
// Takes the records that the threads handed over in the shared counters into the timeline, and
// looks for late ones.
#pragma once

#include <cstdint>

#include "commands/replay/counters.h"
#include "commands/replay/plan.h"
#include "commands/replay/timeline.h"

namespace sluice::replay {

/// What a progress line needs.
struct glance {
  std::uint64_t sent = 0;
  double lag_s = 0;  // of what is due and not yet sent
  bool all_ended = true;
};

class harvest {
 public:
  harvest(plan const& p, shared_counters& book) : plan_(p), book_(book), times_(p.streams.size()) {}

  /// Records of seconds that are over; `now_ns` after the start.
  glance look(std::int64_t now_ns);
  /// When no thread writes any more: what they had begun too.
  void finish();

  timeline const& times() const { return times_; }

 private:
  void take(unsigned worker, std::uint64_t number);

  plan const& plan_;
  shared_counters& book_;
  timeline times_;
};

}  // namespace sluice::replay
