// SPDX-License-Identifier: Apache-2.0
// The parts of a job on its nodes: all of the amount is given, those who wait come first, and a
// tree of relays that sends histograms comes close to what one controller that sees all would do.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "policies/allocate.h"

using namespace sluice::policies;

namespace {

using generator = std::mt19937_64;
using wide = unsigned __int128;
using amounts = std::vector<rate>;

rate pick(generator& random, rate most) {
  return std::uniform_int_distribution<rate>(0, most)(random);
}

leaf any_leaf(generator& random, unsigned blocked_percent) {
  double const wide_spread = std::lognormal_distribution<double>(15, 1.5)(random);
  leaf n;
  n.blocked = pick(random, 99) < blocked_percent;
  n.waiters = n.blocked ? static_cast<std::uint32_t>(pick(random, 16)) : 0;
  n.served = pick(random, 9) == 0 ? 0 : static_cast<rate>(wide_spread);
  return n;
}

amounts by_leaf(std::vector<leaf> const& nodes, rate amount) {
  amounts parts(nodes.size());
  split(std::span<leaf const>(nodes), amount, parts);
  return parts;
}

amounts by_bins(std::vector<demand_bins> const& children, rate amount) {
  amounts parts(children.size());
  split(std::span<demand_bins const>(children), amount, parts);
  return parts;
}

wide total(amounts const& x) { return std::accumulate(x.begin(), x.end(), wide{0}); }

demand_bins bins_of(std::span<leaf const> nodes) {
  demand_bins bins;
  for (leaf const& n : nodes) add_demand(bins, n.served, n.waiters, n.blocked);
  return bins;
}

template <class Body>
void for_seeds(unsigned count, Body body) {
  for (unsigned seed = 1; seed <= count; ++seed) {
    INFO("seed " << seed);
    generator random(seed);
    body(random);
  }
}

}  // namespace

TEST_CASE("split: by hand", "[policies]") {
  leaf const waits{0, 3, true}, waits_once{0, 0, true}, idle{0, 0, false}, calm{100'000, 0, false};
  CHECK(by_leaf({}, 100).empty());
  CHECK(by_leaf({idle}, 100) == amounts{100});
  CHECK(by_leaf({idle, idle}, 101) == amounts{51, 50});
  // 2 % alike, the rest 3 : 1.
  CHECK(by_leaf({waits, waits_once}, 1'000'000) == amounts{745'000, 255'000});
  CHECK(by_leaf({calm, waits, idle}, 900'000) == amounts{108'000, 786'000, 6'000});
  // Nobody waits: what is left goes to all alike.
  CHECK(by_leaf({calm, idle}, 502'000) == amounts{302'000, 200'000});
  CHECK(by_bins({}, 100).empty());
  CHECK(by_bins({{}, {}}, 101) == amounts{51, 50});
  CHECK(by_bins({bins_of({{waits}}), {}}, 100) == amounts{100, 0});
  CHECK(by_bins({bins_of({{waits}}), bins_of({{waits_once}})}, 1'000'000) ==
        amounts{745'000, 255'000});
  CHECK(by_bins({bins_of({{calm}}), bins_of({{waits}}), bins_of({{idle}})}, 600'000) ==
        amounts{106'000, 490'000, 4'000});
}

TEST_CASE("split: who says that very many wait takes a job from nobody", "[policies]") {
  std::uint32_t const all = ~std::uint32_t{0};
  leaf const honest{0, 4, true}, liar{0, all, true};
  // 2 % alike, the rest 4 : 1.
  CHECK(by_leaf({liar, honest}, 1'000'000)[1] >= 205'000);
  CHECK(by_leaf({honest, liar, honest, liar, honest}, 1'000'000)[0] >= 90'000);
  demand_bins lies = bins_of({{liar}});
  lies.blocked_weight = unbounded;
  CHECK(by_bins({lies, bins_of({{honest}})}, 1'000'000)[1] >= 205'000);
}

TEST_CASE("split: all that came is given", "[policies]") {
  for_seeds(5'000, [](generator& random) {
    std::size_t const counts[] = {1, 2, 5, 40};
    unsigned const percent[] = {0, 5, 30, 100};
    unsigned const blocked = percent[pick(random, 3)];
    rate const scale[] = {0, 1, 3, 1'000, 220'000'000, rate{1} << 45, rate{1} << 62};
    rate const amount = pick(random, scale[pick(random, 6)]);
    std::vector<leaf> nodes(counts[pick(random, 3)]);
    for (leaf& n : nodes) n = any_leaf(random, blocked);
    if (pick(random, 3) == 0) nodes[0].served = unbounded;
    if (pick(random, 3) == 0) nodes[0].waiters = ~0u;
    REQUIRE(total(by_leaf(nodes, amount)) == amount);
    std::vector<demand_bins> children(counts[pick(random, 3)]);
    for (leaf const& n : nodes)
      add_demand(children[pick(random, children.size() - 1)], n.served, n.waiters, n.blocked);
    amounts const parts = by_bins(children, amount);
    REQUIRE(total(parts) == amount);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      bool const has_streams = children[i].blocked > 0 || std::any_of(std::begin(children[i].nodes),
                                                                      std::end(children[i].nodes),
                                                                      [](auto n) { return n > 0; });
      if (!has_streams) REQUIRE(parts[i] == 0);
    }
  });
}

TEST_CASE("split: a histogram that contradicts itself gives away no more either", "[policies]") {
  for_seeds(5'000, [](generator& random) {
    std::vector<demand_bins> children(1 + pick(random, 4));
    for (demand_bins& b : children) {
      for (unsigned i = 0; i < demand_bins::count; ++i) {
        if (pick(random, 3) == 0) b.nodes[i] = static_cast<std::uint32_t>(random());
        if (pick(random, 3) == 0) b.demand[i] = random() >> pick(random, 63);
      }
      if (pick(random, 1) == 0) b.blocked = static_cast<std::uint32_t>(random());
      if (pick(random, 1) == 0) b.blocked_weight = random() >> pick(random, 63);
    }
    rate const amount = random() >> pick(random, 63);
    REQUIRE(total(by_bins(children, amount)) == amount);
  });
}

TEST_CASE("split: histograms add up", "[policies]") {
  for_seeds(300, [](generator& random) {
    std::vector<leaf> nodes(1 + pick(random, 60));
    for (leaf& n : nodes) n = any_leaf(random, 20);
    std::size_t const cut = pick(random, nodes.size());
    demand_bins both = bins_of(std::span(nodes).first(cut));
    merge(both, bins_of(std::span(nodes).subspan(cut)));
    demand_bins const whole = bins_of(nodes);
    for (unsigned b = 0; b < demand_bins::count; ++b) {
      REQUIRE(both.nodes[b] == whole.nodes[b]);
      REQUIRE(both.demand[b] == whole.demand[b]);
    }
    REQUIRE(both.blocked == whole.blocked);
    REQUIRE(both.blocked_weight == whole.blocked_weight);
  });
}

TEST_CASE("split: a tree of relays comes close to one controller", "[policies]") {
  unsigned const blocked_percent[] = {0, 5, 30, 100};
  for (unsigned percent : blocked_percent) {
    for_seeds(20, [&](generator& random) {
      std::vector<leaf> nodes(32 * 40);
      rate wanted = 0;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        nodes[i] = any_leaf(random, percent);
        if (i / 40 % 2 == 0) nodes[i].served *= 4;  // unequal relays
        wanted += nodes[i].served;
      }
      rate const amount = wanted * 7 / 10;
      amounts const flat = by_leaf(nodes, amount);
      std::vector<demand_bins> relays;
      for (std::size_t r = 0; r < 32; ++r)
        relays.push_back(bins_of(std::span(nodes).subspan(r * 40, 40)));
      amounts const parts = by_bins(relays, amount);
      rate misplaced = 0;
      for (std::size_t r = 0; r < 32; ++r) {
        rate const exact =
            std::accumulate(flat.begin() + r * 40, flat.begin() + (r + 1) * 40, rate{0});
        misplaced += exact > parts[r] ? exact - parts[r] : 0;
      }
      INFO(percent << " % blocked, misplaced "
                   << 100.0 * static_cast<double>(misplaced) / static_cast<double>(amount) << " %");
      REQUIRE(misplaced < amount / 50);
    });
  }
}
