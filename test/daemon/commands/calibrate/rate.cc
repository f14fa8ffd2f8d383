// SPDX-License-Identifier: Apache-2.0
// The rate of a disk that gives in bursts, whatever part of a burst a window begins and ends in.
#include "commands/calibrate/rate.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "lib/seeds.h"

using namespace sluice::calibrate;

namespace {

/// 2000 requests per second, in bursts of `burst_s` every tenth of a second.
std::uint64_t ended_at(double s, double burst_s) {
  double const slice = std::floor(s / 0.1);
  return static_cast<std::uint64_t>(200 * (slice + std::min(1.0, (s - 0.1 * slice) / burst_s)));
}

std::int64_t ns(double s) { return static_cast<std::int64_t>(s * 1e9); }

}  // namespace

TEST_CASE("calibrate rate: bursts at the ends of a window do not matter", "[calibrate]") {
  sluice::test::for_seeds(300, [](std::mt19937_64& random) {
    std::uniform_real_distribution<double> any(0, 1);
    double const begin = 5 + 0.1 * any(random), burst_s = 0.001 + 0.09 * any(random);
    double const length = 0.3 + 0.7 * any(random);
    std::vector<moment> seen;
    // Looks come unevenly, as on a machine that is busy.
    for (double s = begin; s < begin + length; s += 0.0002 + 0.004 * any(random))
      seen.push_back({ns(s), ended_at(s, burst_s)});
    CHECK(steady_rate(seen) == Approx(2000).epsilon(0.04));
  });
}

TEST_CASE("calibrate rate: few long requests", "[calibrate]") {
  std::vector<moment> seen;
  for (double s = 0; s < 0.64; s += 0.0005)
    seen.push_back({ns(s), static_cast<std::uint64_t>(s * 12.5)});
  CHECK(steady_rate(seen) == Approx(12.5).epsilon(0.03));
}

TEST_CASE("calibrate rate: nothing seen is no rate", "[calibrate]") {
  CHECK(steady_rate({}) == 0);
  CHECK(steady_rate({{5, 7}}) == 0);
  CHECK(steady_rate({{5, 7}, {5, 7}}) == 0);
  CHECK(steady_rate({{1, 7}, {2, 7}, {3, 7}}) == 0);
}
