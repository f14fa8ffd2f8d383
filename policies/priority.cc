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
    basins_.clear();
    order_.clear();
    for (std::size_t i = 0; i < r.claims.size(); ++i) {
      claim const& c = r.claims[i];
      rate const floor = std::max(c.reservation, probes_[i]);
      basins_.push_back({0, std::min(floor, wanted(c, probes_[i])), c.weight});
      basins_.back().low = basins_.back().high;
      order_.push_back(i);
    }
    water_fill(basins_, r.capacity, r.out);
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return r.claims[a].priority > r.claims[b].priority;
    });
    rate left = r.capacity - std::reduce(r.out.begin(), r.out.end());
    for (auto first = order_.begin(); first != order_.end() && left > 0;) {
      auto const last = std::find_if(first, order_.end(), [&](std::size_t i) {
        return r.claims[i].priority != r.claims[*first].priority;
      });
      left = raise(r, {first, last}, left);
      first = last;
    }
    if (left > 0) give_leftovers(r.claims, r.capacity, basins_, r.out);
  }

  /// Gives those of one priority what they want beyond their floors; what remains.
  rate raise(round const& r, std::span<std::size_t const> members, rate left) {
    basins_.clear();
    for (std::size_t i : members) {
      basins_.push_back(
          {r.out[i], std::max(r.out[i], wanted(r.claims[i], probes_[i])), r.claims[i].weight});
      left += r.out[i];
    }
    amounts_.assign(members.size(), 0);
    water_fill(basins_, left, amounts_);
    for (std::size_t m = 0; m < members.size(); ++m) left -= r.out[members[m]] = amounts_[m];
    return left;
  }

  std::vector<basin> basins_;
  std::vector<rate> probes_;
  std::vector<rate> amounts_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::unique_ptr<allocator> make_priority() { return std::make_unique<priority>(); }

}  // namespace sluice::policies
