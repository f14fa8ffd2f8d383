// SPDX-License-Identifier: Apache-2.0
// Steps cover every value once, in order; percentiles agree with sorted values within a step.
#include "libinterpose/core/histogram.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using namespace sluice::core;

TEST_CASE("steps are contiguous and at most a quarter wide", "[histogram]") {
  for (std::size_t i = 0; i + 1 < histogram_steps; ++i) {
    INFO("step " << i);
    std::uint64_t const low = histogram_low(i);
    std::uint64_t const next = histogram_low(i + 1);
    REQUIRE(low < next);
    CHECK(histogram_step(low) == i);
    CHECK(histogram_step(next - 1) == i);
    if (low >= 4) CHECK((next - low) * 4 <= low);
  }
  CHECK(histogram_low(histogram_steps) == std::uint64_t{1} << 42);
  CHECK(histogram_low(histogram_steps) > 3600ull * 1'000'000'000);
  CHECK(histogram_step(~0ull) == histogram_steps - 1);
}

TEST_CASE("percentiles agree with sorted values", "[histogram]") {
  std::mt19937_64 random(5);
  auto h = std::make_unique<histogram>();
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    std::uint64_t v = random() >> (22 + random() % 42);
    values.push_back(v);
    h->add(v);
  }
  std::sort(values.begin(), values.end());
  histogram_counts c{};
  h->add_to(c);
  CHECK(c.total() == values.size());
  for (double share : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    double const exact = double(values[std::size_t(share * double(values.size()))]);
    INFO(share);
    CHECK(double(c.percentile(share)) == Approx(exact).epsilon(0.26).margin(1.5));
  }
  CHECK(c.percentile(1) == values.back());
  CHECK(c.most == values.back());
  CHECK(histogram_step(c.percentile(0)) == histogram_step(values.front()));
}

TEST_CASE("one value, no value and nonsense", "[histogram]") {
  histogram_counts c{};
  CHECK(c.percentile(0.5) == 0);
  c.count[histogram_step(1'000'000)] = 1;
  for (double share : {-1.0, 0.0, 0.5, 1.0, 2.0, std::nan("")})
    CHECK(histogram_step(c.percentile(share)) == histogram_step(1'000'000));
  for (auto& n : c.count) n = ~0ull;
  CHECK(c.percentile(1) < std::uint64_t{1} << 42);
}

TEST_CASE("merging is adding", "[histogram]") {
  histogram_counts a{};
  histogram_counts b{};
  a.count[3] = 2;
  b.count[3] = 5;
  b.count[100] = 1;
  a.merge(b);
  a.most = 5;
  b.most = 9'000'000'000;
  a.merge(b);
  CHECK(a.most == b.most);
  CHECK(a.count[3] == 12);
  CHECK(a.total() == 14);
}

TEST_CASE("threads lose no count", "[histogram]") {
  auto h = std::make_unique<histogram>();
  std::vector<std::thread> pool;
  for (int i = 0; i < 4; ++i)
    pool.emplace_back([&] {
      for (std::uint64_t v = 0; v < 20'000; ++v) h->add(v);
    });
  for (auto& t : pool) t.join();
  histogram_counts c{};
  h->add_to(c);
  CHECK(c.total() == 80'000);
}
