// SPDX-License-Identifier: Apache-2.0
// What one decision costs: each algorithm over JOBS jobs of one supply, and the split of all those
// jobs over their nodes. Beside the figures, in the same run, what filling costs by sorting the
// levels at which jobs begin and end to rise, the usual way.
//   allocate [JOBS [STREAMS [ROUNDS]]]      10000, 100000, 101
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "policies/allocate.h"

namespace {

using namespace sluice::policies;

constexpr rate capacity = 220'000'000;

double now_ms() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

struct timing {
  double median_ms, worst_ms;
};

template <class Body>
timing measure(unsigned rounds, Body body) {
  std::vector<double> spent;
  for (unsigned i = 0; i < rounds; ++i) {
    double const begin = now_ms();
    body(i);
    spent.push_back(now_ms() - begin);
  }
  std::sort(spent.begin(), spent.end());
  return {spent[spent.size() / 2], spent.back()};
}

/// A third waits, the rest uses log-normal amounts; some have a reservation, a limit, a weight.
supply any_supply(std::size_t jobs, unsigned seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> usage(9, 1.5);
  supply s{capacity, {}};
  for (std::size_t j = 0; j < jobs; ++j) {
    claim c;
    c.job = j + 1;
    c.served = static_cast<rate>(usage(random));
    c.blocked = random() % 3 == 0;
    c.waiters = c.blocked ? 1 + random() % 16 : 0;
    c.weight = random() % 4 == 0 ? 4000 : 1000;
    c.reservation = random() % 10 == 0 ? capacity / jobs / 2 : 0;
    c.limit = random() % 10 == 0 ? capacity / jobs * 4 : unbounded;
    c.declared = capacity / jobs;
    c.priority = static_cast<std::uint32_t>(random() % 3);
    s.claims.push_back(c);
  }
  return s;
}

/// The usual way: all levels at which somebody begins or ends to rise, in order.
void fill_by_sorting(std::span<basin const> basins, double amount, std::span<double> out) {
  struct edge {
    double level, slope;
  };
  std::vector<edge> edges;
  double sum = 0, slope = 0, level = 0;
  for (basin const& b : basins) {
    double const w = b.weight;
    sum += static_cast<double>(b.low);
    edges.push_back({static_cast<double>(b.low) / w, w});
    edges.push_back({static_cast<double>(std::min(b.high, capacity)) / w, -w});
  }
  std::sort(edges.begin(), edges.end(), [](edge a, edge b) { return a.level < b.level; });
  for (edge const& e : edges) {
    if (sum + (e.level - level) * slope >= amount) break;
    sum += (e.level - level) * slope;
    level = e.level;
    slope += e.slope;
  }
  if (slope > 0) level += (amount - sum) / slope;
  for (std::size_t i = 0; i < basins.size(); ++i)
    out[i] = std::clamp(basins[i].weight * level, static_cast<double>(basins[i].low),
                        static_cast<double>(basins[i].high));
}

void filling(supply const& s, unsigned rounds) {
  std::vector<basin> basins;
  for (claim const& c : s.claims)
    basins.push_back({c.reservation, c.blocked ? unbounded : c.served + c.reservation, c.weight});
  std::vector<rate> out(basins.size());
  std::vector<double> sorted(basins.size());
  timing const newton = measure(rounds, [&](unsigned) { water_fill(basins, capacity, out); });
  timing const sorting = measure(
      rounds, [&](unsigned) { fill_by_sorting(basins, static_cast<double>(capacity), sorted); });
  double apart = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    apart = std::max(apart, std::fabs(static_cast<double>(out[i]) - sorted[i]));
  std::printf(
      "water_fill %zu: %.3f ms (worst %.3f); by sorting %.3f ms: %.1f times as much; "
      "results at most %.1f milli-tokens/s apart\n",
      basins.size(), newton.median_ms, newton.worst_ms, sorting.median_ms,
      sorting.median_ms / newton.median_ms, apart);
}

/// Every cycle other jobs wait, so that nothing is found already warm.
void deciding(supply const& start, unsigned rounds) {
  std::vector<std::vector<rate>> grants;
  for (algorithm const& a : algorithms()) {
    auto const allocator = a.make();
    std::vector<supply> supplies{start};
    timing const t = measure(rounds, [&](unsigned round) {
      for (std::size_t i = round % 7; i < supplies[0].claims.size(); i += 7)
        supplies[0].claims[i].blocked = !supplies[0].claims[i].blocked;
      allocator->allocate(supplies, std::int64_t{round} * 100'000'000, grants);
    });
    std::printf("allocate %-12.*s %zu jobs: median %.3f ms, worst %.3f\n",
                static_cast<int>(a.name.size()), a.name.data(), start.claims.size(), t.median_ms,
                t.worst_ms);
  }
}

void splitting(supply const& s, std::size_t streams, unsigned rounds) {
  std::mt19937_64 random(3);
  std::size_t const jobs = s.claims.size(), each = std::max<std::size_t>(streams / jobs, 1);
  std::vector<leaf> leaves;
  std::vector<demand_bins> bins;
  for (std::size_t i = 0; i < jobs * each; ++i) {
    leaf const n{random() % 100'000, static_cast<std::uint32_t>(random() % 4), false};
    leaves.push_back(n);
    bins.emplace_back();
    for (int below = 0; below < 8; ++below)
      add_demand(bins.back(), n.served / 8 + random() % 5'000, random() % 4 == 0, false);
  }
  std::vector<rate> parts(each);
  auto const over = [&](auto const& children) {
    return measure(rounds, [&](unsigned) {
      for (std::size_t j = 0; j < jobs; ++j)
        split(std::span(children).subspan(j * each, each), capacity / jobs, parts);
    });
  };
  timing const nodes = over(leaves), relays = over(bins);
  std::printf(
      "split %zu jobs over %zu nodes each: median %.3f ms, worst %.3f; over %zu relays "
      "each, by histograms: median %.3f ms, worst %.3f\n",
      jobs, each, nodes.median_ms, nodes.worst_ms, each, relays.median_ms, relays.worst_ms);
}

}  // namespace

int main(int argc, char** argv) {
  auto const number = [&](int i, std::size_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  std::size_t const jobs = number(1, 10'000), streams = number(2, 100'000);
  auto const rounds = static_cast<unsigned>(number(3, 101));
  if (jobs == 0 || rounds == 0) return 2;
  supply const s = any_supply(jobs, 1);
  filling(s, rounds);
  deciding(s, rounds);
  splitting(s, streams, std::max(rounds / 5, 1u));
  return 0;
}
