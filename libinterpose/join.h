// SPDX-License-Identifier: Apache-2.0
// How a process and its threads come to counters of their own: the process claims a slot, each
// thread a shard, both at its first call. A child of fork joins anew.
// What stays true: a thread without a place counts in a common shard, and what a dead process left
// behind is taken again.
#pragma once

#include "abi/segment.h"

namespace sluice {

/// Gives this process a slot, unless it has one. False: another thread is just doing so.
bool join_process(abi::segment& s);
/// Makes the calling thread ready to count: after its first call, after fork. False: pass through.
bool join_thread();
/// Which rules let the calling thread through: its name or its user has changed.
void refresh_caller_rules();
/// Gives the slot and the shards back, at exit.
void leave_process();

}  // namespace sluice
