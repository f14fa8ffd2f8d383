// SPDX-License-Identifier: Apache-2.0
// A capacity that nobody wrote, over nodes and a relay: counts of fast and slow calls go up with
// the reports, and what the controller finds comes down as grants. The server is a formula.
#include <catch2/catch.hpp>
#include <cmath>

#include "cluster_world.h"

using namespace cluster_world;

namespace {

constexpr double server = 2000, wanted_s = 0.005;  // calls/s; 460/s must stay free of it
constexpr rate lowest = 100 * k / 1000, most = 100 * k;

/// Two nodes below the cluster and two below a relay, which all want more than there is.
struct steered_world : world {
  double foreign = 0;
  std::map<std::string, time_ns> told;

  explicit steered_world(bool is_shadow = false)
      : world({.capacity = {most},
               .classes = {{{.reservation = lowest / 2}}},
               .nodes = 4,
               .lowest = lowest,
               .is_shadow = is_shadow},
              11) {
    add_cluster();
    unsigned const relay = add_relay(0);
    for (unsigned i = 0; i < 4; ++i) add_node(i < 2 ? 0 : relay).add(1 + i % 2, 1, {500 * k});
    each_report = [this](node& n, wire::report& r) { put_speeds(n, r); };
  }

  double use() const { return std::min(double(usable(0)) / 1000, server); }  // calls/s

  void put_speeds(node& n, wire::report& r) {
    double const left = server - foreign - use();
    double const slow = left > 0 ? std::exp(-left * wanted_s) : 1;
    double const mean_s = 1 / std::max(left, 20.0);
    double served = 0;
    for (tenant const& t : n.jobs) served += double(t.served(0)) / 1000;
    double const calls = std::min(served, server / 4) * double(now - told[n.name]) / 1e9;
    told[n.name] = now;
    double const each = 1000;  // calls that one stands for, so that nothing is rounded away
    policies::call_speeds const of = {std::uint64_t(calls), std::uint64_t(calls * each),
                                      std::uint64_t(calls * each * slow),
                                      std::uint64_t(calls * each * mean_s * 1e9)};
    if (of.calls != 0) r.speeds.push_back({0, of});
  }

  double mean_use(time_ns for_ns) {
    double sum = 0;
    for (time_ns at = 0; at < for_ns; at += 100 * ms) {
      run(100 * ms);
      sum += use();
    }
    return sum / double(for_ns) * 100 * ms;
  }
};

}  // namespace

TEST_CASE("cluster: a steered capacity is found, and followed within two seconds", "[cluster]") {
  steered_world w;
  w.run(10'000 * ms);
  double const alone = w.mean_use(5'000 * ms);
  CHECK(alone > 0.9 * 1540);
  CHECK(alone < 1.1 * 1540);
  w.foreign = 1000;
  w.run(2'000 * ms);
  CHECK(w.mean_use(500 * ms) < 1.4 * 540);
  w.run(1'000 * ms);
  double const beside = w.mean_use(5'000 * ms);
  CHECK(beside > 0.85 * 540);
  CHECK(beside < 1.15 * 540);
  w.foreign = 0;
  w.run(2'000 * ms);
  CHECK(w.mean_use(500 * ms) > 0.8 * 1540);
}

TEST_CASE("cluster: a steered capacity stays above what is there in any case", "[cluster]") {
  steered_world w;
  w.foreign = 5000;
  w.run(15'000 * ms);
  CHECK(w.top().in_force(0) == lowest);
  CHECK(double(w.usable(0)) <= 1.001 * double(lowest));
  CHECK(double(w.usable(0)) >= 0.97 * double(lowest));
  CHECK(w.top().steered(0)->sign() == policies::steer_sign::lowest);
}

TEST_CASE("cluster: a shadow gives all that is written and says what it would give", "[cluster]") {
  steered_world w(true);
  w.foreign = 5000;
  w.run(15'000 * ms);
  CHECK(w.top().in_force(0) == most);
  CHECK(double(w.usable(0)) >= 0.97 * double(most));
  CHECK(w.top().steered(0)->capacity() < most);
}

TEST_CASE("cluster: counts that no machine can have are not believed", "[cluster]") {
  steered_world w;
  w.each_report = [](node&, wire::report& r) {
    r.speeds = {{0, {5, 4, 4, 1}}, {0, {1, 1, 2, 1}}, {0, {1, ~0ull >> 8, 1, 1}}};
  };
  w.run(5'000 * ms);
  CHECK(w.top().steered(0)->sign() == policies::steer_sign::quiet);
}
