// SPDX-License-Identifier: Apache-2.0
// The default: weighted max-min over demand. Whoever waited wants everything; whoever did not wants
// what it used and a little more; within its reservation, so much that requests at random times
// seldom wait (fluctuation.h). Reservations are floors while they are wanted, so an idle job lends
// its own and has it back a cycle after its first request waited. What nobody wants raises
// everybody, the idle too. No smoothing, no hysteresis of grants: each was measured and costs
// capacity.
#include <algorithm>
#include <numeric>

#include "policies/fluctuation.h"
#include "policies/per_supply.h"

namespace sluice::policies {
namespace {

class maxmin final : public per_supply {
  void divide(round const& r) override {
    if (noise_.size() <= r.supply) noise_.resize(r.supply + 1);
    fluctuation& noise = noise_[r.supply];
    noise.observe(r.claims, r.now_ns);
    fill_probes(r.claims, r.capacity, basins_, probes_);
    basins_.clear();
    for (std::size_t i = 0; i < r.claims.size(); ++i) {
      claim const& c = r.claims[i];
      rate const high = std::min(std::max(wanted(c, probes_[i]), noise.steady(i)), c.limit);
      basins_.push_back({std::min(std::max(c.reservation, probes_[i]), high), high, c.weight});
    }
    water_fill(basins_, r.capacity, r.out);
    if (std::reduce(r.out.begin(), r.out.end()) < r.capacity)
      give_leftovers(r.claims, r.capacity, basins_, r.out);
  }

  std::vector<fluctuation> noise_;  // by supply
  std::vector<basin> basins_;
  std::vector<rate> probes_;
};

}  // namespace

std::unique_ptr<allocator> make_maxmin() { return std::make_unique<maxmin>(); }

}  // namespace sluice::policies
