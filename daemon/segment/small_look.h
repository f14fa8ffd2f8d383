// SPDX-License-Identifier: Apache-2.0
// Small I/O of a job: for which targets it has what, and what came of it (small.def). The only
// writer of these parts of the result file, and of "small" of a job that runs.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "abi/segment.h"
#include "base/foreign.h"
#include "policy/small.h"
#include "segment/beside.h"

namespace sluice::segment {

/// Of the job whose segment this is. Its rings are read once.
policy::small_targets small_targets_of(foreign<abi::segment> const& s, job_files const& files);

/// {"hints", "gathered", "buffered"}: each where a target has it; null without any. Where nothing
/// came of one, it says why (small_why.h). `is_running`: some process of the job is.
nlohmann::ordered_json counted_small(foreign<abi::segment> const& s,
                                     policy::small_targets const& targets, bool is_running);

/// {"targets": [{"target", "modes"}]} with what counted_small() says; null where no target has any.
nlohmann::ordered_json small_json(foreign<abi::segment> const& s, job_files const& files,
                                  bool is_running);

/// A row of "targets", for target `t` of the ruleset; null where it has nothing of small I/O.
nlohmann::ordered_json small_row(core::ruleset const& rules, policy::small_targets const& targets,
                                 unsigned t);

}  // namespace sluice::segment
