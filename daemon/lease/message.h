// SPDX-License-Identifier: Apache-2.0
// The messages of a parent and a child of the lease protocol, as numbers. One report and one grant
// carry all supplies of the edge; a supply is known by its index here and by a stable key on the
// wire. Time stamps are cookies: only the clock that made one ever reads it again.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace sluice::lease {

using rate = std::uint64_t;    // milli-tokens per second: operations or bytes, times 1000
using time_ns = std::int64_t;  // CLOCK_BOOTTIME of the one who says it

/// Of a grant of one supply to one child. Never reused: a restarted parent has a new incarnation.
struct version {
  std::uint64_t incarnation = 0;
  std::uint64_t counter = 0;
  constexpr auto operator<=>(version const&) const = default;
};

/// The newest message heard from a parent; incarnation 0: none.
struct echo {
  std::uint64_t incarnation = 0;
  time_ns t_parent = 0;
};

/// One supply as the child holds it.
struct holding {
  version applied;  // newest version in force, and below it all is given up
  rate held = 0;    // usable now by grant, 0 when expired; learnt from after a restart only
  rate lent = 0;    // escrow this report lends (0 when `lend` of the report is false)
  std::uint32_t members = 0;  // configured nodes whose escrow is in `lent`; counts for the majority
};

struct report {
  std::uint64_t child_incarnation = 0;
  time_ns t_child = 0;
  echo heard;
  bool lend = false;
  std::vector<holding> supply;
};

struct given {
  version ver;
  rate value = 0;
  std::int64_t lease_ns = 0;  // from t_child of the report that is answered
};

/// Only ever the answer to a report. No supplies: a welcome, which proves nothing but carries
/// t_parent.
struct grant {
  std::uint64_t parent_incarnation = 0;
  time_ns t_parent = 0;
  std::uint64_t child_incarnation = 0;  // echoed
  time_ns t_child = 0;                  // echoed
  std::vector<given> supply;
};

}  // namespace sluice::lease
