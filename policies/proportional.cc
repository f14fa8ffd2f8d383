// SPDX-License-Identifier: Apache-2.0
// Max-min over what the jobs were promised, the smallest promise served first, and what is left to
// all alike, wanted or not. It never looks at demand. Source: plain proportional sharing (PADLL,
// Cheferd type 2), with the sort that the published code lacks. No promise: wants everything.
#include <algorithm>

#include "policies/per_supply.h"

namespace sluice::policies {
namespace {

class proportional final : public per_supply {
  void divide(round const& r) override {
    basins_.clear();
    for (claim const& c : r.claims)
      basins_.push_back({0, std::min(c.declared > 0 ? c.declared : unbounded, c.limit), 1000});
    water_fill(basins_, r.capacity, r.out);
    rate left = r.capacity;
    for (std::size_t i = 0; i < r.claims.size(); ++i) {
      left -= r.out[i];
      basins_[i].high = r.claims[i].limit - r.out[i];
    }
    more_.assign(r.claims.size(), 0);
    water_fill(basins_, left, more_);
    for (std::size_t i = 0; i < r.claims.size(); ++i) r.out[i] += more_[i];
  }

  std::vector<basin> basins_;
  std::vector<rate> more_;
};

}  // namespace

std::unique_ptr<allocator> make_proportional() { return std::make_unique<proportional>(); }

}  // namespace sluice::policies
