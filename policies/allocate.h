// SPDX-License-Identifier: Apache-2.0
// Divides a capacity among jobs. Numbers only: no clock, no names, no heap surprises. All rates are
// milli-tokens per second in 64-bit integers; results are rounded down and their sum never exceeds
// the capacity.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/job_id.h"

namespace sluice::policies {

using rate = std::uint64_t;  // milli-tokens per second
inline constexpr rate unbounded = ~rate{0};

/// One job on one supply (a resource of a target), as reported in the last cycle.
struct claim {
  core::job_id job;             // breaks ties
  std::uint32_t weight = 1000;  // thousandths; 0 counts as 1
  rate reservation = 0;         // floor while wanted
  rate limit = unbounded;       // ceiling
  rate declared = 0;            // what the job was promised, for algorithms that use it; 0: none
  std::uint32_t priority = 0;   // larger first (algorithm `priority`)
  rate served = 0;
  std::uint64_t waiting = 0;  // tokens booked and not served
  std::uint32_t waiters = 0;
  bool blocked = false;  // at least one request waited in the cycle, or waits now
};

struct supply {
  rate capacity = 0;
  std::vector<claim> claims;
};

/// May remember: psfa usage, drf profiles, the default how the use of reservations fluctuates.
class allocator {
 public:
  virtual ~allocator() = default;
  /// grants[s][i] belongs to supplies[s].claims[i]. `now_ns` only ever grows; a supply keeps its
  /// index as long as the allocator lives (a new policy: a new allocator).
  virtual void allocate(std::span<supply const> supplies, std::int64_t now_ns,
                        std::vector<std::vector<rate>>& grants) = 0;
};

/// One row per algorithm: policies/algorithms.def.
struct algorithm {
  std::string_view name;
  std::unique_ptr<allocator> (*make)();
};
std::span<algorithm const> algorithms();
algorithm const* find_algorithm(std::string_view name);

/// x_i = clamp(weight_i * level, low_i, high_i) with sum = min(capacity, sum of high), rounded
/// down, the remainder to the first by position. Sum of low must not exceed capacity (it is scaled
/// if it does). Newton on the level, O(n) per pass. Source: weighted max-min by water-filling.
struct basin {
  rate low = 0;
  rate high = unbounded;        // below low: low counts as high
  std::uint32_t weight = 1000;  // 0 counts as 1
};
void water_fill(std::span<basin const> basins, rate capacity, std::span<rate> out);

/// Demand of a stream or subtree as relays pass it on: a histogram of demand over factor-2 bins.
/// Bin 0 holds what is below 2^14, bin b what is below 2^(14 + b), the last all the rest:
/// operations of one node and bytes of a fast one fit the same scale.
struct demand_bins {
  static constexpr unsigned count = 32;
  std::uint32_t nodes[count] = {};   // streams not blocked whose demand falls in bin b
  rate demand[count] = {};           // their summed demand
  std::uint64_t blocked_weight = 0;  // weight (waiters, at least 1) of the blocked ones
  std::uint32_t blocked = 0;         // how many of them
};
void add_demand(demand_bins& bins, rate served, std::uint32_t waiters, bool blocked);
void merge(demand_bins& into, demand_bins const& from);

/// Splits what a job got over its children (nodes or relays) by demand: `parts[i]` is child i's.
/// All of `amount` is given; a child without streams gets nothing while another has some. Returns
/// how many waiters were counted of one stream at most.
std::uint64_t split(std::span<demand_bins const> children, rate amount, std::span<rate> parts);

/// The same where every child is a node: exact, and without a histogram for each.
struct leaf {
  rate served = 0;
  std::uint32_t waiters = 0;
  bool blocked = false;
};
std::uint64_t split(std::span<leaf const> nodes, rate amount, std::span<rate> parts);

}  // namespace sluice::policies
