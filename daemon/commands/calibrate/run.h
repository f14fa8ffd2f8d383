// SPDX-License-Identifier: Apache-2.0
// A calibration from its begin to its end: the plan, one step after the other, with pauses that
// keep the budget, and what was measured written down as soon as it is known.
#pragma once

#include "commands/calibrate/engine.h"
#include "commands/calibrate/ground.h"
#include "policy/cost_file.h"

namespace sluice::calibrate {

/// From now on SIGINT, SIGTERM and SIGHUP only ask; is_asked_to_end() says so.
void take_signals();
bool is_asked_to_end();
/// Ends as the signal would have ended it.
[[noreturn]] void end_by_signal();

/// Where and when, for the head of a cost file. Throws a usage error when `path` lies in no mount.
policy::provenance provenance_now(std::string const& path);

/// How many threads a kind of request may have: their buffers must fit into memory.
unsigned most_threads(timing const& t, work const& w);

}  // namespace sluice::calibrate
