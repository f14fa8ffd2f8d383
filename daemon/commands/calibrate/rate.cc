// SPDX-License-Identifier: Apache-2.0
#include "commands/calibrate/rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::calibrate {

double steady_rate(std::vector<moment> const& seen) {
  if (seen.size() < 2) return 0;
  moment const& first = seen.front();
  auto const since_ns = [&](moment const& m) { return static_cast<double>(m.at_ns - first.at_ns); };
  double const length_ns = since_ns(seen.back());
  double weights = 0, times = 0, counts = 0, squares = 0, products = 0;
  for (std::size_t i = 1; i < seen.size(); ++i) {
    double const t = since_ns(seen[i]) / length_ns;
    auto const n = static_cast<double>(seen[i].ended - first.ended);
    // Looks are not evenly spaced: each stands for the time since the one before.
    double const since = (since_ns(seen[i]) - since_ns(seen[i - 1])) / length_ns;
    double const w = since * std::pow(std::sin(std::numbers::pi * t), 2);
    weights += w;
    times += w * t;
    counts += w * n;
    squares += w * t * t;
    products += w * t * n;
  }
  double const spread = squares * weights - times * times;
  if (!(spread > 0)) return 0;
  return std::max(0.0, (products * weights - times * counts) / spread / length_ns * 1e9);
}

}  // namespace sluice::calibrate
