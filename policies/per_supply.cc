// SPDX-License-Identifier: Apache-2.0
// Brings claims into the order of their jobs and the amounts back into theirs. Claims that are in
// order, as controllers keep them, are not copied.
#include "policies/per_supply.h"

#include <numeric>

namespace sluice::policies {

std::span<claim const> job_order::sort(std::vector<claim> const& claims) {
  is_sorted_ = std::is_sorted(claims.begin(), claims.end(),
                              [](claim const& a, claim const& b) { return a.job < b.job; });
  if (is_sorted_) return claims;
  order_.resize(claims.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](auto a, auto b) { return claims[a].job < claims[b].job; });
  sorted_.clear();
  for (std::uint32_t i : order_) sorted_.push_back(claims[i]);
  return sorted_;
}

void job_order::restore(std::span<rate const> amounts, std::vector<rate>& out) const {
  out.assign(amounts.begin(), amounts.end());
  if (is_sorted_) return;
  for (std::size_t i = 0; i < amounts.size(); ++i) out[order_[i]] = amounts[i];
}

void per_supply::allocate(std::span<supply const> supplies, std::int64_t now_ns,
                          std::vector<std::vector<rate>>& grants) {
  grants.resize(supplies.size());
  for (std::size_t s = 0; s < supplies.size(); ++s) {
    auto const claims = order_.sort(supplies[s].claims);
    amounts_.assign(claims.size(), 0);
    divide({s, supplies[s].capacity, now_ns, claims, amounts_});
    order_.restore(amounts_, grants[s]);
  }
}

void fill_probes(std::span<claim const> claims, rate capacity, std::vector<basin>& basins,
                 std::vector<rate>& probes) {
  basins.clear();
  for (claim const& c : claims) basins.push_back({0, unbounded, c.weight});
  probes.assign(claims.size(), 0);
  water_fill(basins, capacity / 1000, probes);
}

void give_leftovers(std::span<claim const> claims, rate capacity, std::vector<basin>& basins,
                    std::span<rate> out) {
  basins.clear();
  for (std::size_t i = 0; i < claims.size(); ++i)
    basins.push_back({out[i], claims[i].limit, claims[i].weight});
  water_fill(basins, capacity, out);
}

}  // namespace sluice::policies
