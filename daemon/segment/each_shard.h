// SPDX-License-Identifier: Apache-2.0
// Shards of a segment that somebody counts in, or has counted in.
#pragma once

#include <algorithm>

#include "abi/segment.h"

namespace sluice::segment {

/// `s`: a segment, or one of somebody else.
template <class Segment, class Visit>
void each_shard(Segment& s, Visit&& visit) {
  constexpr auto relaxed = std::memory_order_relaxed;
  unsigned const used = std::min(s.head.shards_used.load(relaxed), abi::owned_shards);
  for (unsigned i = 0; i < used; ++i) visit(s.owned[i]);
  if (s.head.commons_used.load(relaxed) == 0) return;
  for (auto& common : s.common) visit(common);
}

}  // namespace sluice::segment
