// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "commands/replay/schedule.h"

using namespace sluice::replay;

namespace {

/// The times of all threads of a stream, sorted.
std::vector<double> times_of(curve const& c, unsigned threads, schedule_settings const& s) {
  std::vector<double> times;
  for (unsigned i = 0; i < threads; ++i)
    for (schedule one(c, {i, threads}, s); one.next_s() != never_s; one.advance())
      times.push_back(one.next_s());
  std::sort(times.begin(), times.end());
  return times;
}

std::size_t within(std::vector<double> const& times, double from_s, double to_s) {
  auto in = [&](double t) { return t >= from_s && t < to_s; };
  return static_cast<std::size_t>(std::count_if(times.begin(), times.end(), in));
}

}  // namespace

TEST_CASE("operations of an interval are evenly spaced", "[replay]") {
  curve const c({4, 2}, 1, 1);
  auto const times = times_of(c, 1, {});
  REQUIRE(times.size() == 6);
  std::vector<double> const wanted = {0.125, 0.375, 0.625, 0.875, 1.25, 1.75};
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(times[i] == Approx(wanted[i]));
}

TEST_CASE("threads share a stream: each op is sent once, whatever their number", "[replay]") {
  curve const c({10, 0, 0.5, 0.5, 33.3, 7}, 2, 1);
  auto const alone = times_of(c, 1, {});
  for (unsigned threads : {2u, 3u, 7u, 64u}) {
    auto const shared = times_of(c, threads, {});
    REQUIRE(shared.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(shared[i] == Approx(alone[i]));
  }
}

TEST_CASE("fractions are carried from interval to interval", "[replay]") {
  curve const c(std::vector<double>(1000, 0.3), 1, 1);
  for (double phase : {0.01, 0.5, 0.99}) {
    auto const times = times_of(c, 3, {arrivals::even, phase, 1});
    CHECK(std::abs(static_cast<double>(times.size()) - 300) <= 1);
    CHECK(within(times, 0, 500) == Approx(150).margin(1));
  }
}

TEST_CASE("every interval has its count to within one operation", "[replay]") {
  std::vector<double> amounts;
  for (int i = 0; i < 200; ++i) amounts.push_back(1000 * std::abs(std::sin(i * 0.37)) + 0.77 * i);
  curve const c(amounts, 0.5, 1);
  auto const times = times_of(c, 4, {arrivals::even, phase_of(5), 1});
  for (int i = 0; i < 200; ++i) {
    auto const n = within(times, i * 0.5, i * 0.5 + 0.5);
    CHECK(static_cast<double>(n) == Approx(amounts[static_cast<std::size_t>(i)]).margin(1));
    CHECK(n == count_even(c, phase_of(5), i * 0.5, i * 0.5 + 0.5));
  }
}

TEST_CASE("an interval without operations sends none", "[replay]") {
  curve const c({5, 0, 0, 5}, 1, 1);
  auto const times = times_of(c, 2, {});
  CHECK(times.size() == 10);
  CHECK(within(times, 1, 3) == 0);
}

TEST_CASE("a schedule ends where its span ends", "[replay]") {
  curve const c({10, 10}, 10, 1, {0, 12.5});
  auto const times = times_of(c, 1, {});
  CHECK(times.size() == 12);  // the next one is meant for 12.5
  CHECK(times.back() == Approx(11.5));
  CHECK(c.last() == Approx(12.5));
}

TEST_CASE("the warm-up has negative times at the rate of the first interval", "[replay]") {
  curve const c({10, 100}, 1, 1, {2, never_s});
  auto const times = times_of(c, 3, {});
  CHECK(within(times, -2, 0) == 20);
  CHECK(within(times, 0, 1) == 10);
  CHECK(within(times, 1, 2) == 100);
  CHECK(times.front() >= -2);
}

TEST_CASE("bytes become operations of a size", "[replay]") {
  curve const c({1 << 20, 1 << 21}, 1, 65536);
  auto const times = times_of(c, 2, {});
  CHECK(within(times, 0, 1) == 16);
  CHECK(within(times, 1, 2) == 32);
}

TEST_CASE("poisson arrivals: the same seed gives the same times, the mean is the rate",
          "[replay]") {
  curve const c(std::vector<double>(100, 100), 1, 1);
  schedule_settings const s{arrivals::poisson, 0.5, 7};
  auto const first = times_of(c, 4, s), second = times_of(c, 4, s);
  CHECK(first == second);
  CHECK(first != times_of(c, 4, {arrivals::poisson, 0.5, 8}));
  CHECK(static_cast<double>(first.size()) == Approx(10000).margin(400));  // four deviations
  // Even spacing would have no gap longer than 10 ms; these have.
  double longest = 0, previous = 0;
  for (double t : first) {
    longest = std::max(longest, t - previous);
    previous = t;
  }
  CHECK(longest > 0.04);
}

TEST_CASE("phases differ, so that streams of one rate do not send together", "[replay]") {
  std::vector<double> phases;
  for (unsigned i = 0; i < 50; ++i) phases.push_back(phase_of(i));
  std::sort(phases.begin(), phases.end());
  for (std::size_t i = 1; i < phases.size(); ++i) CHECK(phases[i] - phases[i - 1] > 0.005);
  CHECK(phases.front() >= 0);
  CHECK(phases.back() < 1);
}
