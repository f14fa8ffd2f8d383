// SPDX-License-Identifier: Apache-2.0
// One allocation: sums the streams of live children to claims of jobs, lets the algorithm of the
// policy divide each supply, and splits a job's grant over the children that it runs on. Below a
// relay the parent has said what each job may have, and only the split is left. Buffers are kept,
// so that a cycle allocates nothing once it has seen its largest size.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cluster/roster.h"
#include "policies/allocate.h"
#include "policies/request_profile.h"

namespace sluice::cluster {

struct supply_state {
  rate capacity = 0;  // what was divided
  rate granted = 0;   // to jobs
  rate served = 0;
  rate demand = 0;  // of jobs whose demand is bounded
  std::uint32_t blocked_jobs = 0;
  rate reserved = 0;        // reservations of jobs that want them
  rate bookable = 0;        // what they may come to
  bool overbooked = false;  // they exceed that
};

/// What this controller may give of a limit that is meant for all nodes.
struct limit_part {
  std::uint64_t members = 1;
  std::uint64_t configured = 1;
  rate of(rate limit) const;
};

class allotment {
 public:
  /// `capacity` by supply. `algorithm` null: amounts of the parent, see flow::amount.
  /// Leaves its results in flow::granted, stream::wanted, child::wanted and `supplies`.
  void run(roster& r, std::span<rate const> capacity, policies::allocator* algorithm,
           limit_part part, time_ns now);

  std::vector<supply_state> supplies;

 private:
  struct place {
    std::uint32_t child;
    std::uint32_t stream;
  };
  void sum(roster& r);
  void arrange(roster& r);
  void promise(roster& r);
  void claim(roster& r, std::span<rate const> capacity, limit_part part);
  void follow(roster& r, std::span<rate const> capacity);
  void divide(roster& r, flow& f);

  std::vector<place> order_;  // streams of live children, those of one flow side by side
  std::vector<policies::supply> claims_;
  std::vector<std::vector<std::uint32_t>> claimants_;  // flow of each claim
  std::vector<std::vector<rate>> grants_;
  std::vector<std::vector<policies::followed_need>> needs_;  // by supply
  std::vector<std::vector<std::uint32_t>> needy_;            // flow of each
  std::vector<policies::leaf> leaves_;
  std::vector<policies::demand_bins> bins_;
  std::vector<rate> parts_;
};

}  // namespace sluice::cluster
