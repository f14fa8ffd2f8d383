// SPDX-License-Identifier: Apache-2.0
// The directories that a job's calls use, for `sluice run --paths`. They are noted in the area of
// abi/path_area.h, which all processes of the job share. The plan of the stage sends every counted
// call the slow way then (see plan_of in plan.cc), and only that way leads here, so a job without
// this option runs the same instructions as ever.
#pragma once

#include <cstdint>

#include "abi/path_area.h"
#include "place.h"
#include "visit.h"

namespace sluice::paths {

/// Maps the file `paths` in the directory of `segment_path`, whose last part is replaced, when
/// somebody asked and it is one of ours.
void begin(char* segment_path);

extern abi::path_area* area;  // null: nothing is noted

void note_call(visit& v, unsigned entry, place const& where);
void add_bytes(visit const& v, std::uint64_t moved);
void add_wait(visit const& v, std::uint64_t waited_ns);
void add_time(visit const& v, std::uint64_t took_ns);

/// A counted call begins: its directory gets one more, and the visit knows its slot.
inline void note(visit& v, unsigned entry, place const& where) {
  if (area != nullptr) [[unlikely]]
    note_call(v, entry, where);
}

}  // namespace sluice::paths
