// SPDX-License-Identifier: Apache-2.0
// Random amounts for the algorithms: small numbers make rounding and ties common, large ones
// overflow what is careless.
#pragma once

#include <random>

#include "policies/allocate.h"

namespace sluice::test {

using generator = std::mt19937_64;
using policies::rate;

inline rate pick(generator& random, rate most) {
  return std::uniform_int_distribution<rate>(0, most)(random);
}

inline rate any_amount(generator& random) {
  rate const scale[] = {0, 3, 50, 100'000, 220'000'000, rate{1} << 45};
  return pick(random, scale[pick(random, 5)]);
}

}  // namespace sluice::test
