// SPDX-License-Identifier: Apache-2.0
// A test body with a fresh random generator for each of many seeds; a failure names its seed.
#pragma once

#include <catch2/catch.hpp>
#include <random>

namespace sluice::test {

template <class Body>
void for_seeds(unsigned count, Body body) {
  for (unsigned seed = 1; seed <= count; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    body(random);
  }
}

}  // namespace sluice::test
