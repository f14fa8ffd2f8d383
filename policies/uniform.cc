// SPDX-License-Identifier: Apache-2.0
// The same for everybody, used or not: the baseline of most experiments in print.
#include "policies/per_supply.h"

namespace sluice::policies {
namespace {

class uniform final : public per_supply {
  void divide(round const& r) override {
    basins_.clear();
    for (claim const& c : r.claims) basins_.push_back({0, c.limit, 1000});
    water_fill(basins_, r.capacity, r.out);
  }

  std::vector<basin> basins_;
};

}  // namespace

std::unique_ptr<allocator> make_uniform() { return std::make_unique<uniform>(); }

}  // namespace sluice::policies
