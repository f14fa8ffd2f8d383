// SPDX-License-Identifier: Apache-2.0
// All that a daemon does in the memory of a job: changes, as plain data, and copies of parts of it.
// Who does it is far_memory.h, for other users' jobs, or the loop, for its own.
#pragma once

#include <cstdint>

#include "abi/after_area.h"
#include "abi/segment.h"
#include "base/foreign.h"
#include "core/service_curve.h"

namespace sluice::segment {

/// What is mapped: a job's segment; or its area of epochs, its area of roles, or the beginning of
/// its rings, which are copied whole.
enum class region_kind : std::uint32_t { segment, after, roles, rings };
std::size_t bytes_of(region_kind kind);

enum class touch : std::uint32_t {
  curve,      // of channel `index`: `curve` from `at_ns` on
  holder,     // `word`: see abi::holder_word
  beside,     // `word`: bits of abi::area that are there now
  free_slot,  // of an area of epochs: slot `index`, if its word still is `expected`
  take_slot,  // the same: its question is taken
  waits_for,  // slot `index`: for whom, as text
  answer,     // slot `index`, if `expected` took it: `result`, and the text for people
  known,      // the cluster knows of this node; `word`: its book
};

/// One change. Crosses to another process, so it is plain data.
struct memory_change {
  touch what = {};
  std::uint32_t index = 0;
  std::uint32_t expected = 0;
  std::int32_t result = 0;
  std::int64_t at_ns = 0;
  std::uint64_t word = 0;
  core::curve_settings curve = {};
  char text[8 * abi::after_reason_words] = {};  // up to a zero, or all of it
};

/// Makes it, and wakes whom it concerns. What does not belong to the region does nothing.
void apply(foreign<abi::segment>& s, memory_change const& c);
void apply(foreign<abi::after_area>& a, memory_change const& c);

/// Parts of a segment, as bits.
enum part : std::uint32_t {
  glance = 1,  // head, curves, who waits, counters and waits of channels
  slots = 2,   // of processes
  counts = 4,  // of calls, their times and sizes, of small I/O; the ruleset
  whole = glance | slots | counts
};

/// Copies these parts. What nobody has used is left as it is in `to`, which was zeros.
void copy_parts(foreign<abi::segment> const& from, abi::segment& to, std::uint32_t parts);

}  // namespace sluice::segment
