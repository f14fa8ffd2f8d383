// SPDX-License-Identifier: Apache-2.0
// What the stateful algorithms do over time: psfa takes many rounds to give an idle job its share
// back, maxmin two cycles; drf lets jobs with fixed ratios progress alike on their dominant
// resource. Time is virtual.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "policies/allocate.h"

using namespace sluice::policies;

namespace {

constexpr std::int64_t cycle_ns = 100'000'000;

/// Three jobs use whatever they get, the fourth from second 60. Cycles until it has 95 % of a
/// quarter.
int cycles_to_share(std::string_view name) {
  auto const allocator = find_algorithm(name)->make();
  rate const capacity = 220'000'000;
  std::vector<supply> supplies{{capacity, std::vector<claim>(4)}};
  std::vector<std::vector<rate>> grants(1, std::vector<rate>(4));
  for (int cycle = 0; cycle < 2000; ++cycle) {
    for (std::size_t i = 0; i < 4; ++i) {
      claim& c = supplies[0].claims[i];
      bool const wants = i < 3 || cycle >= 600;
      c.job = i + 1;
      c.declared = capacity / 4;
      c.served = wants ? grants[0][i] : 0;
      c.blocked = wants;
    }
    allocator->allocate(supplies, cycle * cycle_ns, grants);
    if (cycle >= 600 && grants[0][3] >= capacity / 4 / 100 * 95) return cycle - 600 + 1;
  }
  return -1;
}

/// Progress of jobs that use two supplies in fixed ratios, after `cycles`.
std::vector<double> progress(std::string_view name, std::vector<std::vector<double>> const& ratios,
                             int cycles) {
  auto const allocator = find_algorithm(name)->make();
  rate const capacity = 100'000'000;
  std::vector<supply> supplies(2);
  for (supply& s : supplies) s = {capacity, std::vector<claim>(ratios.size())};
  std::vector<std::vector<rate>> grants(2, std::vector<rate>(ratios.size(), capacity / 8));
  std::vector<double> pace(ratios.size());
  for (int cycle = 0; cycle < cycles; ++cycle) {
    for (std::size_t j = 0; j < ratios.size(); ++j) {
      double least = 1e18;
      for (std::size_t s = 0; s < 2; ++s)
        least = std::min(least, static_cast<double>(grants[s][j]) / ratios[j][s]);
      pace[j] = least / static_cast<double>(capacity);
      for (std::size_t s = 0; s < 2; ++s) {
        claim& c = supplies[s].claims[j];
        c.job = j + 1;
        c.served = static_cast<rate>(least * ratios[j][s]);
        c.blocked = static_cast<double>(grants[s][j]) < least * ratios[j][s] * 1.1;
      }
    }
    allocator->allocate(supplies, cycle * cycle_ns, grants);
  }
  return pace;
}

}  // namespace

TEST_CASE("a job back from idle waits for psfa and not for maxmin", "[policies]") {
  CHECK(cycles_to_share("maxmin") == 1);
  CHECK(cycles_to_share("psfa-2023") > 150);
  CHECK(cycles_to_share("psfa-2023") < 650);
  CHECK(cycles_to_share("psfa-2026") > 100);
  CHECK(cycles_to_share("psfa-2026") < 650);
}

TEST_CASE("drf: equal dominant shares", "[policies]") {
  auto const pace = progress("drf", {{1, 0.1}, {0.1, 1}, {1, 1}, {0.5, 0.2}}, 300);
  CHECK(pace[0] == Approx(0.323).epsilon(0.05));
  CHECK(pace[1] == Approx(0.323).epsilon(0.05));
  CHECK(pace[2] == Approx(0.323).epsilon(0.05));
  CHECK(pace[3] == Approx(0.645).epsilon(0.05));
}
