// SPDX-License-Identifier: Apache-2.0
// Who comes first takes what it wants; the next share what is left. Floors come before all: what is
// reserved, and a probe, so that the last still moves. Within one priority as maxmin. A saturated
// job of high priority leaves the others their floors and nothing else: that is what it is for.
#include <algorithm>
#include <numeric>

#include "policies/per_supply.h"

namespace sluice::policies {
namespace {

class priority final : public per_supply {
  void divide(round const& r) override {
    fill_probes(r.claims, r.capacity, basins_, probes_);
    std::vector<std::uint32_t> levels;
    basins_.clear();
    high_.clear();
    for (std::size_t i = 0; i < r.claims.size(); ++i) {
      claim const& c = r.claims[i];
      high_.push_back(wanted(c, probes_[i]));
      rate const low = std::min(std::max(c.reservation, probes_[i]), high_[i]);
      basins_.push_back({low, low, c.weight});
      levels.push_back(c.priority);
    }
    water_fill(basins_, r.capacity, r.out);
    std::sort(levels.begin(), levels.end(), std::greater<>{});
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    for (std::uint32_t level : levels) {
      basins_.clear();
      for (std::size_t i = 0; i < r.claims.size(); ++i) {
        bool const rises = r.claims[i].priority == level;
        basins_.push_back({r.out[i], rises ? high_[i] : r.out[i], r.claims[i].weight});
      }
      water_fill(basins_, r.capacity, r.out);
    }
    if (std::reduce(r.out.begin(), r.out.end()) < r.capacity)
      give_leftovers(r.claims, r.capacity, basins_, r.out);
  }

  std::vector<basin> basins_;
  std::vector<rate> probes_;
  std::vector<rate> high_;
};

}  // namespace

std::unique_ptr<allocator> make_priority() { return std::make_unique<priority>(); }

}  // namespace sluice::policies
