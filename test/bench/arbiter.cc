// SPDX-License-Identifier: Apache-2.0
// What the decisions of a controller cost, without any socket: one cycle is every child's report
// taken in, one allocation, every answer written. Two shapes: many nodes flat, and relays with
// histograms. Every report differs from the last, so every target moves. CPU time of one thread.
//   arbiter [CHILDREN STREAMS [relay [merged]]]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "cluster/arbiter.h"
#include "lease/child.h"

using namespace sluice;
using cluster::rate;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr int cycles = 30;

double clock_ms(clockid_t id) {
  timespec t = {};
  clock_gettime(id, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

cluster::policy_table plan_of_two() {
  cluster::policy_table p;
  for (char const* name : {"metadata", "data"}) {
    cluster::supply_row row;
    row.resource = name;
    row.name = row.resource + "@t";
    row.key = wire::supply_key(name, "t");
    row.capacity = 1'000'000'000'000;
    row.lease.pool = row.capacity;
    p.supplies.push_back(row);
  }
  p.classes = {{0, "", std::vector<cluster::terms>(2)},
               {1, "gold", {{.weight = 4000, .reservation = 1'000'000}, {}}},
               {2, "bronze", {{.limit = 2'000'000'000}, {}}}};
  return p;
}

struct collector : cluster::outbox {
  std::vector<wire::grant> newest;
  std::uint64_t sent = 0;
  bool send(std::uint32_t child, wire::message const& m) override {
    if (auto const* g = std::get_if<wire::grant>(&m)) newest[child] = *g;
    ++sent;
    return true;
  }
};

void fill(wire::report& r, std::mt19937& random, unsigned child, unsigned streams, bool relay,
          bool merged) {
  r.streams.resize(streams);
  r.bins.clear();
  for (unsigned i = 0; i < streams; ++i) {
    wire::stream_report& s = r.streams[i];
    // Jobs of ten nodes each; below relays a job is on one or two of them.
    s.job = 1 + (relay ? child * std::uint64_t{streams} / 3 * 2 + i / 2
                       : child / 10 * streams / 2 + i / 2);
    s.supply = i % 2;
    s.class_key = static_cast<std::uint32_t>(s.job.low % 3);
    s.served = random() % 50'000'000;
    s.waiters = random() % 3 == 0 ? 1 + random() % 8 : 0;
    s.blocked_ppm = s.waiters ? 500'000 : 0;
    if (!merged) continue;
    policies::demand_bins bins;
    for (int n = 0; n < 5; ++n) policies::add_demand(bins, random() % 5'000'000, 0, false);
    if (s.waiters) policies::add_demand(bins, 0, s.waiters, true);
    wire::put_bins(r, i, bins);
  }
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void measure(unsigned children, unsigned streams, bool relay, bool merged) {
  std::mt19937 random(1);
  std::int64_t now = 1'000'000 * ms;
  cluster::arbiter::settings set;
  set.name = "bench";
  set.time = lease::timers_of(100 * ms, 1000 * ms, 0);
  cluster::arbiter arbiter(set, plan_of_two(), 1'000'000, now);
  collector out;
  out.newest.resize(children);
  std::vector<lease::child> below;
  wire::hello hello;
  hello.who = relay ? wire::role::relay : wire::role::node;
  for (unsigned c = 0; c < children; ++c) {
    below.emplace_back(set.time, 1);
    below.back().set_own(std::vector<lease::child::own>(2));
    arbiter.hello(c, hello, {"child" + std::to_string(c), 0}, now, out);
  }
  std::vector<wire::report> reports(children);
  std::vector<double> take, settle, all;
  std::uint64_t grants = 0;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    now += 100 * ms;
    for (unsigned c = 0; c < children; ++c) {
      wire::report& r = reports[c];
      if (!out.newest[c].lease.supply.empty() || cycle > 0)
        below[c].on_grant(1, out.newest[c].lease, now);
      r.lease = below[c].make_report(1, now);
      r.supplies = {arbiter.policy().supplies[0].key, arbiter.policy().supplies[1].key};
      r.applied_sequence = out.newest[c].sequence;
      fill(r, random, c, streams, relay, merged);
    }
    std::uint64_t const before = out.sent;
    double const t0 = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned c = 0; c < children; ++c) arbiter.report(c, reports[c], now);
    double const t1 = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    arbiter.settle(now, out);
    double const t2 = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    if (cycle < cycles / 2) continue;  // the quiet second after the start
    grants += out.sent - before;
    take.push_back(t1 - t0);
    settle.push_back(t2 - t1);
    all.push_back(t2 - t0);
  }
  std::printf(
      "%6u %-14s x %4u streams: reports %6.2f ms, allocation and answers %6.2f ms, cycle %6.2f"
      " ms (worst %.2f), %llu grants a cycle\n",
      children,
      merged  ? "merging relays"
      : relay ? "relays"
              : "nodes",
      streams, median(take), median(settle), median(all), *std::max_element(all.begin(), all.end()),
      static_cast<unsigned long long>(grants / take.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) {
    measure(static_cast<unsigned>(std::atoi(argv[1])), static_cast<unsigned>(std::atoi(argv[2])),
            argc > 3, argc > 4);
    return 0;
  }
  measure(100, 10, false, false);
  measure(1000, 10, false, false);
  measure(10'000, 10, false, false);
  measure(100, 120, true, true);
  measure(100, 1000, true, false);
  measure(100, 1000, true, true);
}
