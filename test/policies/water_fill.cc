// SPDX-License-Identifier: Apache-2.0
// Water-filling against its definition and against a slow twin that sorts breakpoints, over random
// basins: also none, one, empty, unbounded, and many with the same bounds. The seed is printed with
// every failure.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "amounts.h"
#include "lib/seeds.h"
#include "policies/allocate.h"

using sluice::policies::basin;
using sluice::policies::rate;
using sluice::policies::unbounded;
using sluice::policies::water_fill;

namespace {

using sluice::test::any_amount;
using sluice::test::for_seeds;
using sluice::test::generator;
using sluice::test::pick;
using wide = unsigned __int128;

std::uint32_t any_weight(generator& random) {
  std::uint32_t const weights[] = {0, 1, 2, 500, 1000, 1000, 1000, 1001, 4'000'000'000u};
  return weights[pick(random, 8)];
}

std::vector<basin> any_basins(generator& random) {
  std::size_t const counts[] = {1, 2, 3, 7, 40};
  std::vector<basin> basins(counts[pick(random, 4)]);
  bool const same = pick(random, 5) == 0;
  for (basin& b : basins) {
    if (same && &b != &basins[0]) {
      b = basins[0];
      continue;
    }
    b.low = pick(random, 2) == 0 ? any_amount(random) : 0;
    b.high = pick(random, 2) == 0 ? unbounded : b.low + any_amount(random);
    b.weight = any_weight(random);
  }
  return basins;
}

std::vector<rate> fill(std::vector<basin> const& basins, rate capacity) {
  std::vector<rate> out(basins.size());
  water_fill(basins, capacity, out);
  return out;
}

wide total(std::vector<rate> const& amounts) {
  return std::accumulate(amounts.begin(), amounts.end(), wide{0});
}

wide total(std::vector<basin> const& basins, rate basin::*member) {
  return std::accumulate(basins.begin(), basins.end(), wide{0},
                         [&](wide sum, basin const& b) { return sum + b.*member; });
}

/// The exact level by sorting the levels at which a basin begins or ends to rise.
std::vector<long double> by_sorting(std::vector<basin> const& basins, rate capacity) {
  auto const weight = [](basin const& b) {
    return static_cast<long double>(std::max(b.weight, 1u));
  };
  auto const amounts = [&](long double level) {
    std::vector<long double> x;
    for (basin const& b : basins)
      x.push_back(std::clamp<long double>(weight(b) * level, b.low, std::min(b.high, capacity)));
    return x;
  };
  auto const sum = [](std::vector<long double> const& x) {
    return std::accumulate(x.begin(), x.end(), 0.0L);
  };
  std::vector<long double> edges{0};
  for (basin const& b : basins) {
    edges.push_back(b.low / weight(b));
    edges.push_back(std::min(b.high, capacity) / weight(b));
  }
  std::sort(edges.begin(), edges.end());
  std::size_t i = 0;
  while (i + 1 < edges.size() && sum(amounts(edges[i + 1])) < capacity) ++i;
  if (i + 1 == edges.size()) return amounts(edges.back());
  long double const below = sum(amounts(edges[i])), above = sum(amounts(edges[i + 1]));
  long double const part = above > below ? (capacity - below) / (above - below) : 0;
  return amounts(edges[i] + part * (edges[i + 1] - edges[i]));
}

}  // namespace

TEST_CASE("water_fill: small cases by hand", "[policies]") {
  CHECK(fill({}, 100).empty());
  CHECK(fill({{}}, 0) == std::vector<rate>{0});
  CHECK(fill({{}}, 100) == std::vector<rate>{100});
  CHECK(fill({{}, {}, {}}, 100) == std::vector<rate>{34, 33, 33});
  CHECK(fill({{0, unbounded, 3000}, {}}, 100) == std::vector<rate>{75, 25});
  CHECK(fill({{0, 10, 1000}, {}, {}}, 100) == std::vector<rate>{10, 45, 45});
  CHECK(fill({{60, unbounded, 1000}, {}, {}}, 100) == std::vector<rate>{60, 20, 20});
  CHECK(fill({{0, 5, 1}, {0, 6, 1}}, 100) == std::vector<rate>{5, 6});
  CHECK(fill({{100, 100, 1}, {300, 300, 1}}, 100) == std::vector<rate>{25, 75});
  CHECK(fill({{}, {}}, unbounded) == std::vector<rate>{unbounded / 2 + 1, unbounded / 2});
}

TEST_CASE("water_fill: gives all that can be used and never more", "[policies]") {
  for_seeds(20'000, [](generator& random) {
    auto const basins = any_basins(random);
    rate const capacity = any_amount(random);
    auto const x = fill(basins, capacity);
    wide const low = total(basins, &basin::low), high = total(basins, &basin::high);
    REQUIRE(total(x) == std::min<wide>(capacity, high));
    for (std::size_t i = 0; i < x.size(); ++i) {
      REQUIRE(x[i] <= basins[i].high);
      if (low <= capacity) REQUIRE(x[i] >= basins[i].low);
      if (low > capacity) REQUIRE(x[i] <= basins[i].low);
    }
  });
}

TEST_CASE("water_fill: who could take more has no less by weight than who is above its floor",
          "[policies]") {
  for_seeds(5'000, [](generator& random) {
    auto const basins = any_basins(random);
    rate const capacity = any_amount(random);
    if (total(basins, &basin::low) > capacity) return;
    auto const x = fill(basins, capacity);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t j = 0; j < x.size(); ++j) {
        if (x[i] >= basins[i].high || x[j] <= basins[j].low) continue;
        // One unit of rounding for each: (x_i + 1) / w_i >= (x_j - 1) / w_j.
        wide const wi = std::max(basins[i].weight, 1u), wj = std::max(basins[j].weight, 1u);
        REQUIRE((wide{x[i]} + 1) * wj >= (wide{x[j]} - 1) * wi);
      }
    }
  });
}

TEST_CASE("water_fill: more capacity takes nothing from anybody", "[policies]") {
  for_seeds(5'000, [](generator& random) {
    auto const basins = any_basins(random);
    rate const capacity = any_amount(random);
    auto const before = fill(basins, capacity);
    rate const more = pick(random, 1) == 0 ? 1 : any_amount(random);
    auto const after = fill(basins, capacity + more);
    for (std::size_t i = 0; i < before.size(); ++i) REQUIRE(after[i] >= before[i]);
  });
  // The case in which shares rounded down with the remainder dealt out fail.
  std::vector<basin> const ten_to_one{{0, unbounded, 1},
                                      {0, unbounded, 1},
                                      {0, unbounded, 10},
                                      {0, unbounded, 10},
                                      {0, unbounded, 10}};
  for (rate c = 0; c < 200; ++c) {
    auto const before = fill(ten_to_one, c), after = fill(ten_to_one, c + 1);
    for (std::size_t i = 0; i < before.size(); ++i) REQUIRE(after[i] >= before[i]);
  }
}

TEST_CASE("water_fill: agrees with sorting", "[policies]") {
  for_seeds(5'000, [](generator& random) {
    auto const basins = any_basins(random);
    rate const capacity = any_amount(random);
    if (total(basins, &basin::low) > capacity) return;
    auto const x = fill(basins, capacity);
    auto const y = by_sorting(basins, capacity);
    // What all others lose by rounding down may end with one that is much heavier.
    double const rounding = 1.01 + static_cast<double>(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO("basin " << i << " of " << x.size());
      REQUIRE(std::fabs(static_cast<double>(static_cast<long double>(x[i]) - y[i])) <=
              rounding + static_cast<double>(y[i]) * 1e-12);
    }
  });
}

TEST_CASE("water_fill: scales, and does not care for the order", "[policies]") {
  for_seeds(3'000, [](generator& random) {
    auto basins = any_basins(random);
    rate const capacity = any_amount(random);
    auto const x = fill(basins, capacity);
    rate const k = 1 + pick(random, 1000);
    auto larger = basins;
    for (basin& b : larger) {
      b.low *= k;
      if (b.high != unbounded) b.high *= k;
    }
    auto const scaled = fill(larger, capacity * k);
    for (std::size_t i = 0; i < x.size(); ++i) {
      wide const rounding = (x.size() + 1 + (larger[i].low >> 32)) * wide{k};
      REQUIRE(scaled[i] + rounding >= wide{x[i]} * k);
      REQUIRE(scaled[i] <= wide{x[i]} * k + rounding);
    }
    // Position decides about single units only, or 2^-32 of floors that had to be scaled.
    std::reverse(basins.begin(), basins.end());
    auto const reversed = fill(basins, capacity);
    for (std::size_t i = 0; i < x.size(); ++i) {
      rate const other = reversed[x.size() - 1 - i];
      REQUIRE(std::max(x[i], other) - std::min(x[i], other) <=
              1 + (basins[x.size() - 1 - i].low >> 32));
    }
  });
}
