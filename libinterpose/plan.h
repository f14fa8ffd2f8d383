// SPDX-License-Identifier: Apache-2.0
// What a call meets, worked out from the rules before any is made: the tables of state.h that every
// call asks.
#pragma once

#include "core/ruleset.h"
#include "state.h"

namespace sluice {

/// `gate`: as in stage_state::gate_of_rule.
gate_plan plan_gate(unsigned gate);

/// A filter of system calls that was there before us may end the program for one that it does not
/// make itself.
bool is_below_filter();

/// Fills private_map::plan, and what `stage` has of the rules. After paths::begin() and
/// roles::begin(): a job that notes its paths, or has roles, looks at the rules each time.
void plan_calls(core::ruleset const& rules);

}  // namespace sluice
