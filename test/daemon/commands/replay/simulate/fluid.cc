// SPDX-License-Identifier: Apache-2.0
// The simulation: what comes in goes out or waits, nobody gets more than there is, nothing is left
// while somebody waits, and what can be computed by hand comes out so.
#include <catch2/catch.hpp>
#include <random>

#include "commands/replay/simulate/fluid.h"
#include "policy/policy.h"

namespace {

using namespace sluice;

/// One supply of 1000 operations/s and jobs of the default class.
cluster::policy_table plan_of(std::string const& more = "",
                              std::string const& capacity = "1000/s") {
  std::string const text =
      R"({"targets": {"scratch": {"path": "/scratch", "capacity": {"metadata": ")" + capacity +
      R"("}}})" + more + "}";
  return cluster::policy_table_of(policy::parse_policy(text, "p"), text);
}

/// `counts` by job, in intervals.
trace::trace trace_of(std::vector<std::vector<double>> const& counts, double interval_s) {
  trace::trace t;
  t.interval_s = interval_s;
  t.counts.resize(counts[0].size());
  for (std::size_t j = 0; j < counts.size(); ++j) {
    t.columns.push_back({std::string(1, static_cast<char>('a' + j)), *trace::find_op("open")});
    for (std::size_t i = 0; i < counts[j].size(); ++i) t.counts[i].push_back(counts[j][i]);
  }
  return t;
}

struct simulated {
  simulation::load load;
  simulation::past past;
};

simulated simulate(cluster::policy_table const& p, std::vector<std::vector<double>> const& counts,
                   double interval_s, std::vector<std::string> const& classes = {}) {
  simulation::load l = simulation::make_load(trace_of(counts, interval_s), p, "scratch", classes);
  simulation::past past = simulation::simulate(l, p, 10000);
  return {std::move(l), std::move(past)};
}

double sum(std::vector<simulation::cell> const& cells, double simulation::cell::*what) {
  double total = 0;
  for (auto const& c : cells) total += c.*what;
  return total;
}

std::vector<std::vector<double>> random_load(std::mt19937& rng, std::size_t jobs,
                                             std::size_t intervals, double mean) {
  std::lognormal_distribution<double> amount(0, 1);
  std::bernoulli_distribution idle(0.2);
  std::vector<std::vector<double>> counts(jobs, std::vector<double>(intervals));
  for (auto& row : counts) {
    for (double& x : row) x = idle(rng) ? 0 : std::floor(amount(rng) * mean);
    row[0] = std::max(row[0], 1.0);
  }
  return counts;
}

}  // namespace

TEST_CASE("a load that is twice the capacity takes twice the time", "[whatif]") {
  auto const [load, past] = simulate(plan_of(), {{2000 * 60, 0, 0}}, 60);
  auto const& cells = past.jobs[0].by_supply[0];
  REQUIRE(past.jobs[0].finished);
  // One cycle passes before the job, unknown until then, has a grant.
  CHECK(past.jobs[0].ended_s == Approx(120.1).margin(0.2));
  CHECK(sum(cells, &simulation::cell::done) == Approx(120000));
  CHECK(sum(cells, &simulation::cell::blocked_s) == Approx(120.1).margin(0.2));
  CHECK(cells[0].done == Approx(60000).margin(101));
  CHECK(cells[0].backlog == Approx(60000).margin(101));
  CHECK(cells[0].lag_s == Approx(30).margin(0.2));
  CHECK(cells[1].lag_s == Approx(60).margin(1.2));
}

TEST_CASE("what fits is served at once", "[whatif]") {
  auto const [load, past] = simulate(plan_of(), {{30000, 30000}, {20000, 20000}}, 60);
  for (auto const& job : past.jobs) {
    CHECK(sum(job.by_supply[0], &simulation::cell::blocked_s) < 1);
    CHECK(job.ended_s == Approx(120));
  }
  CHECK(past.supplies[0].queued_s < 1);
}

TEST_CASE("offered is done or waits, and nobody gets more than there is", "[whatif]") {
  std::mt19937 rng(7);
  for (std::string const algorithm : {"maxmin", "static", "uniform", "priority", "proportional",
                                      "psfa-2023", "psfa-2026", "drf"}) {
    for (double const interval_s : {0.05, 1.0, 7.3, 60.0}) {
      INFO(algorithm << " at " << interval_s << " s");
      auto const counts = random_load(rng, 5, 40, 150 * interval_s);
      auto const p = plan_of(R"(, "algorithm": ")" + algorithm + "\"");
      auto const [load, past] = simulate(p, counts, interval_s);
      for (std::size_t i = 0; i < past.intervals; ++i) {
        double all = 0;
        for (auto const& job : past.jobs) {
          auto const& c = job.by_supply[0][i];
          double const before = i > 0 ? job.by_supply[0][i - 1].backlog : 0;
          CHECK(before + c.offered == Approx(c.done + c.backlog).epsilon(1e-9).margin(1e-5));
          CHECK(c.done <= c.grant * interval_s + 1e-3);
          CHECK(c.blocked_s <= interval_s * (1 + 1e-9));
          CHECK(c.delayed <= c.offered + 1e-6);
          all += c.done;
        }
        CHECK(all <= 1000 * interval_s * (1 + 1e-9) + 1e-3);
      }
      for (std::size_t j = 0; j < past.jobs.size(); ++j)
        if (past.jobs[j].finished)
          CHECK(sum(past.jobs[j].by_supply[0], &simulation::cell::done) ==
                Approx(sum(past.jobs[j].by_supply[0], &simulation::cell::offered)));
    }
  }
}

TEST_CASE("max-min leaves next to nothing while somebody waits", "[whatif]") {
  std::mt19937 rng(11);
  for (int round = 0; round < 10; ++round) {
    auto const [load, past] = simulate(plan_of(), random_load(rng, 4, 60, 60 * 280), 60);
    auto const& s = past.supplies[0];
    REQUIRE(s.queued_s > 600);
    // Two cycles after each change, and the 2 % that those who do not wait have to spare.
    CHECK(s.wasted / (s.capacity * s.queued_s) < 0.025);
    for (auto const& job : past.jobs) CHECK(job.finished);
  }
}

TEST_CASE("static parts stay unused", "[whatif]") {
  auto const p = plan_of(R"(, "algorithm": "static", "classes": {
      "half": {"scratch": {"metadata": {"reservation": "500/s"}}},
      "rest": {"scratch": {"metadata": {"reservation": "500/s"}}}})");
  auto const [load, past] =
      simulate(p, {{90000, 0, 0}, {6000, 6000, 6000}}, 60, {"a=half", "b=rest"});
  CHECK(past.jobs[0].by_supply[0][0].done == Approx(30000).epsilon(0.01));
  CHECK(past.supplies[0].wasted / (1000 * past.supplies[0].queued_s) == Approx(0.4).margin(0.01));
}

TEST_CASE("who is held by the limit of his class waits too", "[whatif]") {
  auto const p = plan_of(R"(, "classes": {
      "slow": {"scratch": {"metadata": {"limit": "100/s"}}}})");
  auto const [load, past] = simulate(p, {{60000, 0, 0}}, 60, {"a=slow"});
  auto const& s = past.supplies[0];
  CHECK(s.queued_s < 1);
  double blocked_s = 0, unused = 0;
  for (auto const& c : s.by_interval) blocked_s += c.blocked_s, unused += c.unused;
  CHECK(blocked_s == Approx(sum(past.jobs[0].by_supply[0], &simulation::cell::blocked_s)));
  CHECK(blocked_s > 500);
  CHECK(unused / (1000 * blocked_s) == Approx(0.9).margin(0.01));
}

TEST_CASE("an algorithm that moves slowly is asked until it is there", "[whatif]") {
  auto const p = plan_of(R"(, "algorithm": "psfa-2023", "classes": {
      "half": {"scratch": {"metadata": {"reservation": "500/s"}}}})");
  std::vector<double> const all(10, 2000 * 60);
  std::vector<double> late = all;
  late[0] = 1;
  std::fill(late.begin() + 1, late.begin() + 8, 0);
  auto const [load, past] = simulate(p, {all, late}, 60, {"half"});
  // Every 5 s a quarter of the gap: in the first minute it has most of its half, not what it had.
  double const first = past.jobs[1].by_supply[0][8].done / 60;
  CHECK(first > 300);
  CHECK(first < 480);
  CHECK(past.jobs[1].by_supply[0][9].done / 60 > 480);
}

TEST_CASE("a limit holds, and is not called waste", "[whatif]") {
  auto const p = plan_of(R"(, "classes": {"slow": {"scratch": {"metadata": {"limit": "100/s"}}}})");
  auto const [load, past] = simulate(p, {{60000}}, 60, {"slow"});
  CHECK(past.jobs[0].finished);
  CHECK(past.jobs[0].ended_s == Approx(600).margin(1.5));
  CHECK(past.supplies[0].wasted < 1000 * 0.5);
}

TEST_CASE("without enforcement nobody waits and the capacity is exceeded", "[whatif]") {
  auto const [load, past] =
      simulate(plan_of(R"(, "control": {"enforce": false})"), {{120000, 6000}}, 60);
  CHECK(sum(past.jobs[0].by_supply[0], &simulation::cell::blocked_s) == 0);
  CHECK(past.supplies[0].over_s == Approx(60));
}

TEST_CASE("a queue that never empties is given up", "[whatif]") {
  auto const p = plan_of("", "1/s");
  simulation::load const l = simulation::make_load(trace_of({{60000}}, 60), p, "scratch", {});
  simulation::past const past = simulation::simulate(l, p, 20);
  CHECK(past.intervals == 20);
  CHECK_FALSE(past.jobs[0].finished);
}

TEST_CASE("a month is few decisions", "[whatif]") {
  std::mt19937 rng(3);
  auto const [load, past] = simulate(plan_of(), random_load(rng, 4, 5000, 60 * 220), 60);
  CHECK(past.decisions < 5000 * 60);
}

TEST_CASE("operations find their supply, jobs their class", "[whatif]") {
  std::string const text = R"({"targets": {"scratch": {"path": "/scratch",
      "capacity": {"metadata": "1k/s", "data": "1MiB/s"}}},
    "classes": {"gold": {"scratch": {"metadata": {"weight": 4}}},
                "bronze": {"scratch": {"metadata": {"weight": 1}}}},
    "control": {"default_class": "bronze"}})";
  auto const p = cluster::policy_table_of(policy::parse_policy(text, "p"), text);
  trace::trace t;
  t.interval_s = 1;
  for (char const* op : {"open", "write", "sync"}) t.columns.push_back({"a", *trace::find_op(op)});
  t.columns.push_back({"b", *trace::find_op("getxattr")});
  t.counts = {{1, 2, 3, 4}, {10, 20, 30, 0}};
  auto const l = simulation::make_load(t, p, "scratch", {"b=gold"});
  REQUIRE(l.jobs.size() == 2);
  CHECK(l.jobs[0].qos_class == "bronze");
  CHECK(l.jobs[1].qos_class == "gold");
  std::size_t const metadata = p.supplies[0].resource == "metadata" ? 0 : 1;
  CHECK(l.jobs[0].offered[metadata] == std::vector<double>{1, 10});
  CHECK(l.jobs[0].offered[1 - metadata] == std::vector<double>{2, 20});
  CHECK(l.jobs[1].offered[1 - metadata].empty());
  CHECK(l.jobs[1].end == 1);
  CHECK_THROWS_WITH(simulation::make_load(t, p, "scratch", {"c=gold"}),
                    Catch::Contains("no job \"c\"") && Catch::Contains("a, b"));
  CHECK_THROWS_WITH(simulation::make_load(t, p, "scratch", {"silver"}),
                    Catch::Contains("no class \"silver\"") && Catch::Contains("gold, bronze"));
  CHECK_THROWS_WITH(simulation::make_load(t, p, "scratch", {"a=gold", "b=gold", "silver"}),
                    Catch::Contains("no class \"silver\""));
  t.counts = {{0, 0, 0, 0}};
  CHECK_THROWS_WITH(simulation::make_load(t, p, "scratch", {}), Catch::Contains("no operations"));
}
