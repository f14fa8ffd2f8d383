// SPDX-License-Identifier: Apache-2.0
// What requests cost, and what a promise of them comes to: work that comes in bursts, mixtures that
// move, counters that somebody made up, and promises that together exceed what there is.
#include "policies/request_profile.h"

#include <catch2/catch.hpp>

#include "lib/seeds.h"

using namespace sluice;
using namespace sluice::policies;

namespace {

double vops(rate r) { return static_cast<double>(r) / 1000; }

/// GETs and PUTs of one job, second by second.
struct store {
  request_profile by{{{100, 1}, {50, 2}}};  // promised a second, and what one costs alone

  void second(request_look get, request_look put, double rest = 0) {
    request_look const seen[] = {get, put};
    by.look(seen, get.own_vops + put.own_vops + get.caused_vops + put.caused_vops + rest, 1);
  }
};

}  // namespace

TEST_CASE("request profile: before any request a promise is what they cost alone") {
  store s;
  CHECK(vops(s.by.need()) == 200);
  s.second({}, {});
  CHECK(vops(s.by.need()) == 200);
}

TEST_CASE("request profile: what requests cost is followed within seconds, and stays without any") {
  store s;
  for (int i = 0; i < 10; ++i) s.second({200, 200, 0}, {});
  CHECK(s.by.costs()[0].own == Approx(1));
  for (int i = 0; i < 5; ++i) s.second({200, 800, 0}, {});  // larger ones, or no cache
  CHECK(s.by.costs()[0].own == Approx(4).epsilon(0.02));
  for (int i = 0; i < 600; ++i) s.second({}, {});
  CHECK(s.by.costs()[0].own == Approx(4).epsilon(0.02));
  CHECK(s.by.costs()[1].own == 2);
}

TEST_CASE("request profile: what comes in bursts is spread over the requests that cause it") {
  store s;
  double least = 1e9, most = 0;
  for (int i = 0; i < 300; ++i) {
    bool const compacts = i % 20 >= 17;  // 2000 VOPs each second for three in twenty
    s.second({100, 100, 0}, {60, 120, compacts ? 2000.0 : 0});
    if (i < 120) continue;
    least = std::min(least, s.by.costs()[1].caused);
    most = std::max(most, s.by.costs()[1].caused);
  }
  double const each = 3 * 2000.0 / (20 * 60);  // 5 VOPs
  CHECK(least > 0.85 * each);
  CHECK(most < 1.15 * each);
  CHECK(s.by.costs()[0].caused == 0);
}

TEST_CASE("request profile: in a burst as many requests pass as were promised") {
  request_profile by({{100, 1}});
  // A closed loop beside 100 requests a second that are wanted: both get parts of what is granted
  // as they ask.
  double granted = 150, passed = 0, worst = 0;
  for (int i = 0; i < 120; ++i) {
    bool const compacts = i % 40 >= 30;
    double const wants = compacts ? 100 + 900 : 100;
    double const part = std::min(granted / wants, 1.0);
    passed = 100 * part;
    request_look const seen[] = {{passed, passed, compacts ? 900 * part : 0}};
    by.look(seen, passed + seen[0].caused_vops, 1);
    granted = std::min(vops(by.need()), 2000.0);
    if (i % 40 >= 35) worst = std::max(worst, 100 - passed);
    CHECK(vops(by.need()) < 1100 * 1.3);  // no more than the burst takes
  }
  CHECK(worst < 5);
}

TEST_CASE("request profile: work that is still owed counts for the requests that were") {
  store s;
  for (int i = 0; i < 10; ++i) s.second({}, {100, 200, 0});
  for (int i = 0; i < 300; ++i) s.second({}, {0, 0, 10});
  CHECK(s.by.costs()[1].caused == Approx(3000.0 / 1000).epsilon(0.1));
}

TEST_CASE("request profile: counters that nobody paid for claim no more than was served") {
  request_profile by({{100, 1}});
  for (int i = 0; i < 300; ++i) {
    request_look const made_up[] = {{1, 1e15, 1e15}};
    by.look(made_up, 50, 1);
  }
  CHECK(by.costs()[0].all() <= 50 * 1.01);
  request_profile none({{1e9, 1e6}});
  request_look const absurd[] = {{1e300, 1e300, 1e300}};
  none.look(absurd, 0, 1e9);
  CHECK(none.need() < unbounded);
}

TEST_CASE("request profile: needs are fitted to what may be reserved") {
  std::vector<followed_need> needs = {
      {100, 100, 100, 0}, {50, 400, 300, 0}, {50, unbounded, 550, 0}};
  fit(needs, 10'000);
  CHECK(needs[0].given == 100);
  CHECK(needs[1].given == 300);
  CHECK(needs[2].given == 550);
  needs[1].need = 500;
  fit(needs, 10'000);
  CHECK(needs[1].given == 400);  // its most
  needs[1].need = 300;
  fit(needs, 575);  // 200 in any case; 250 and 500 above that become 125 and 250
  CHECK(needs[0].given == 100);
  CHECK(needs[1].given == 175);
  CHECK(needs[2].given == 300);
  fit(needs, 10);
  CHECK(needs[2].given == 50);
}

TEST_CASE("request profile: fitted needs keep to their bounds and to the room") {
  test::for_seeds(2000, [](auto& random) {
    std::vector<followed_need> needs(random() % 6 + 1);
    rate least = 0;
    for (auto& n : needs) {
      n.least = random() % 1000;
      n.most = n.least + random() % 3000;
      n.need = random() % 5000;
      least += n.least;
    }
    rate const room = random() % 10'000;
    fit(needs, room);
    rate sum = 0;
    for (auto const& n : needs) {
      CHECK(n.given >= n.least);
      CHECK(n.given <= n.most);
      sum += n.given;
    }
    CHECK(sum <= std::max(room, least));
  });
}
