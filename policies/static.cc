// SPDX-License-Identifier: Apache-2.0
// Everybody has what was promised, used or not, and nobody looks back. Promises that do not fit are
// scaled; who was promised nothing shares equally what the promises leave. Source: Cheferd, type 1.
#include <algorithm>

#include "policies/per_supply.h"

namespace sluice::policies {
namespace {

class fixed final : public per_supply {
  void divide(round const& r) override {
    basins_.clear();
    for (claim const& c : r.claims) {
      rate const promised = std::min(c.declared > 0 ? c.declared : c.reservation, c.limit);
      basins_.push_back({promised, promised > 0 ? promised : c.limit, 1000});
    }
    water_fill(basins_, r.capacity, r.out);
  }

  std::vector<basin> basins_;
};

}  // namespace

std::unique_ptr<allocator> make_static() { return std::make_unique<fixed>(); }

}  // namespace sluice::policies
