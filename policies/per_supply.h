// SPDX-License-Identifier: Apache-2.0
// The common part of algorithms that treat every supply by itself: claims come in any order and are
// divided in the order of their job keys, so that the answer never depends on the order of arrival.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "policies/allocate.h"

namespace sluice::policies {

/// Claims in ascending order of job, and amounts back in the order in which the claims came.
class job_order {
 public:
  /// Valid until the next call; `claims` must live as long.
  std::span<claim const> sort(std::vector<claim> const& claims);
  void restore(std::span<rate const> amounts, std::vector<rate>& out) const;

 private:
  bool is_sorted_ = true;
  std::vector<std::uint32_t> order_;
  std::vector<claim> sorted_;
};

class per_supply : public allocator {
 public:
  void allocate(std::span<supply const> supplies, std::int64_t now_ns,
                std::vector<std::vector<rate>>& grants) final;

 protected:
  /// Claims in ascending order of job; the sum of `out` must not exceed the capacity.
  struct round {
    std::size_t supply;  // index, for what is remembered
    rate capacity;
    std::int64_t now_ns;
    std::span<claim const> claims;
    std::span<rate> out;
  };
  virtual void divide(round const& r) = 0;

 private:
  job_order order_;
  std::vector<rate> amounts_;
};

inline rate saturating_add(rate a, rate b) { return a + b < a ? unbounded : a + b; }

/// Served plus 2 %: absorbs counting noise; every point more is taken from those who wait.
inline rate with_headroom(rate served) { return saturating_add(served, served / 50); }

/// A blocked stream hides how much more it wants.
inline bool is_blocked(claim const& c) { return c.blocked || c.waiters > 0; }

/// What a claim would use, at most.
inline rate wanted(claim const& c, rate probe) {
  rate const demand = is_blocked(c) ? unbounded : saturating_add(with_headroom(c.served), probe);
  return std::min(c.limit, demand);
}

/// A thousandth of the capacity over all by weight, so that a first request does not wait.
void fill_probes(std::span<claim const> claims, rate capacity, std::vector<basin>& basins,
                 std::vector<rate>& probes);

/// Raises `out` to a common level, nobody above its limit, until all of the capacity is given.
void give_leftovers(std::span<claim const> claims, rate capacity, std::vector<basin>& basins,
                    std::span<rate> out);

}  // namespace sluice::policies
