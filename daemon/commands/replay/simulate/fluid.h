// SPDX-License-Identifier: Apache-2.0
// Jobs as queues of a fluid, in virtual time: demand flows in evenly within an interval of the
// trace, and out at the granted rate. The allocation algorithm is asked every cycle of the policy
// while something changes, then less often, and not at all after it has given the same answer for
// long.
// What stays true: offered = done + backlog for every job and supply at any time, and nobody gets
// more than the grant.
#pragma once

#include <vector>

#include "commands/replay/simulate/load.h"

namespace sluice::simulation {

/// One job on one supply in one interval.
struct cell {
  double offered = 0;
  double done = 0;
  double delayed = 0;    // arrived while something waited
  double blocked_s = 0;  // how long something waited
  double waiting = 0;    // backlog, mean
  double backlog = 0;    // at the end
  double lag_s = 0;      // age of the oldest that waited, most in the interval
  double grant = 0;      // rate, mean
};

struct job_past {
  std::vector<std::vector<cell>> by_supply;  // [supply][interval], empty: never used
  double started_s = 0;
  double ended_s = 0;
  bool finished = false;
};

/// One supply in one interval; daemon/commands/report/README.md says what waiting and unused mean.
struct supply_cell {
  double blocked_s = 0;  // something waited, for whatever rule
  double unused = 0;     // capacity of that time, less what was served
};

struct supply_past {
  double capacity = 0;
  double done = 0;
  double busy_s = 0;    // used to 99 % or more
  double over_s = 0;    // beyond the capacity: only where nothing is enforced
  double queued_s = 0;  // somebody waited who was not at the limit of the class
  double wasted = 0;    // unused in those: what the algorithm is to blame for
  std::vector<supply_cell> by_interval;
};

struct past {
  std::size_t intervals = 0;  // with those after the trace, until all is done
  std::vector<job_past> jobs;
  std::vector<supply_past> supplies;
  std::uint64_t decisions = 0;
};

/// `most_intervals`: gives up then, with jobs that are not finished.
past simulate(load const& l, cluster::policy_table const& p, std::size_t most_intervals);

}  // namespace sluice::simulation
