// SPDX-License-Identifier: Apache-2.0
// From a trace to the load of a replay: which jobs there are, how fast they go, when each begins.
// The result is a trace again, in seconds of the replay, so that what is replayed and what is
// simulated is the same load. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/trace/trace.h"

namespace sluice::replay {

struct load_settings {
  double time_scale = 1;  // so many seconds of the trace pass in one; rates per second stay
  double rate_scale = 1;  // of all rates per second
  unsigned jobs = 0;      // 0: as the trace has them
  unsigned loops = 1;
  double stagger_s = 0;   // each job begins so much later than the one before
  double duration_s = 0;  // of the replay, up to a whole interval; 0: all of it
};

/// Throws a usage error when the load would be too large or there is nothing to do. Jobs have
/// names, columns of the same job and op are one, columns without anything are left out.
trace::trace shape(trace::trace const& t, load_settings const& s);

/// The columns of one job; throws a usage error that lists the jobs when there is no such.
trace::trace only_job(trace::trace const& t, std::string const& job);

}  // namespace sluice::replay
