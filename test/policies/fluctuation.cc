// SPDX-License-Identifier: Apache-2.0
// A promise that is used at random moments is kept ready, one that is used evenly or not at all is
// lent. The other job always wants everything.
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "policies/allocate.h"

using namespace sluice::policies;

namespace {

constexpr std::int64_t cycle_ns = 100'000'000;
constexpr rate capacity = 250'000;     // 250/s
constexpr rate reservation = 120'000;  // of the first job

/// Two jobs: the first with the reservation, the second blocked for ever.
class site {
 public:
  /// What the first may use after a cycle in which it was served that much.
  rate grant(rate served, bool blocked = false) {
    supply s;
    s.capacity = capacity;
    s.claims.resize(2);
    s.claims[0].job = 1;
    s.claims[0].weight = 10'000;
    s.claims[0].reservation = reservation;
    s.claims[0].served = served;
    s.claims[0].blocked = blocked;
    s.claims[1].job = 2;
    s.claims[1].served = capacity - served;
    s.claims[1].blocked = true;
    now_ns_ += cycle_ns;
    algorithm_->allocate({&s, 1}, now_ns_, grants_);
    REQUIRE(grants_[0][0] + grants_[0][1] == capacity);
    return grants_[0][0];
  }

 private:
  std::unique_ptr<allocator> algorithm_ = find_algorithm("maxmin")->make();
  std::vector<std::vector<rate>> grants_;
  std::int64_t now_ns_ = 0;
};

constexpr rate per_s(unsigned in_a_cycle) { return rate{in_a_cycle} * 10'000; }

}  // namespace

TEST_CASE("A promise that is used at random moments is ready for the next ones",
          "[policies][fluctuation]") {
  std::mt19937_64 random(1);
  std::poisson_distribution<unsigned> requests(5);
  site s;
  rate ready = s.grant(per_s(5));
  unsigned late = 0;
  for (unsigned cycle = 0; cycle < 2000; ++cycle) {
    unsigned const n = requests(random);
    if (cycle >= 20 && per_s(n) > ready) ++late;
    ready = s.grant(per_s(n));
    if (n <= 10) REQUIRE(ready <= reservation);
  }
  INFO(late << " of 2000 cycles had more requests than were ready");
  CHECK(late < 20);
}

TEST_CASE("Of a promise that is used evenly the rest is lent", "[policies][fluctuation]") {
  site s;
  rate ready = 0;
  for (unsigned cycle = 0; cycle < 50; ++cycle) ready = s.grant(per_s(5));
  CHECK(ready <= per_s(5) + per_s(5) / 50 + capacity / 1000);
}

TEST_CASE("A slow rise is no fluctuation", "[policies][fluctuation]") {
  site s;
  rate served = 20'000, ready = 0;
  for (unsigned cycle = 0; cycle < 60; ++cycle) ready = s.grant(served += 500);
  CHECK(ready <= served + served / 20);
}

TEST_CASE("An idle job lends all it was promised", "[policies][fluctuation]") {
  std::mt19937_64 random(2);
  std::poisson_distribution<unsigned> requests(5);
  site s;
  for (unsigned cycle = 0; cycle < 100; ++cycle) s.grant(per_s(1 + requests(random)));
  s.grant(0);
  CHECK(s.grant(0) <= capacity / 1000);
}
