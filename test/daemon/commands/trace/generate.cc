// SPDX-License-Identifier: Apache-2.0
// Generated traces: mean and peak as asked, the same for the same seed, and those in traces/ are
// what the command in their header makes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "base/error.h"
#include "commands/trace/generate.h"

using namespace sluice;

namespace {

/// Operations per second of each interval, without bytes.
std::vector<double> rates(trace::trace const& t) {
  std::vector<double> all;
  for (auto const& row : t.counts) {
    double sum = 0;
    for (std::size_t c = 0; c < row.size(); ++c)
      if (!trace::op_table[t.columns[c].op].counts_bytes()) sum += row[c];
    all.push_back(sum / t.interval_s);
  }
  return all;
}

double mean(std::vector<double> const& of) {
  double sum = 0;
  for (double value : of) sum += value;
  return sum / static_cast<double>(of.size());
}

}  // namespace

TEST_CASE("generate: mean and peak are those asked for", "[trace][generate]") {
  for (char const* seed : {"1", "2", "3", "99"}) {
    for (char const* diurnal : {"0", "0.7"}) {
      auto const t = trace::generate("", {{"mean", "2k/s"},
                                          {"peak", "9k/s"},
                                          {"length", "6h"},
                                          {"interval", "10s"},
                                          {"diurnal", diurnal},
                                          {"seed", seed}});
      auto const rate = rates(t);
      CHECK(rate.size() == 2160);
      CHECK(mean(rate) == Approx(2000).epsilon(0.002));
      CHECK(*std::max_element(rate.begin(), rate.end()) == Approx(9000).epsilon(0.001));
    }
  }
}

TEST_CASE("generate: shares of operations, jobs and bytes", "[trace][generate]") {
  auto const t = trace::generate("", {{"mix", "open=1,close=1,getattr=2"},
                                      {"bytes", "read=64KiB"},
                                      {"jobs", "2"},
                                      {"shares", "1,3"},
                                      {"noise", "0"}});
  CHECK(t.jobs() == std::vector<std::string>{"job1", "job2"});
  REQUIRE(t.columns.size() == 8);
  std::vector<double> sum(8);
  for (auto const& row : t.counts)
    for (std::size_t c = 0; c < 8; ++c) sum[c] += row[c];
  CHECK(sum[2] / sum[0] == Approx(2).epsilon(0.001));
  CHECK(sum[4] / sum[0] == Approx(3).epsilon(0.01));
  CHECK(sum[3] / (sum[0] + sum[1] + sum[2]) == Approx(65536).epsilon(0.001));
}

TEST_CASE("generate: the same seed, the same trace; another seed, another", "[trace][generate]") {
  CHECK(trace::generate("checkpoint", {}).counts == trace::generate("checkpoint", {}).counts);
  CHECK(trace::generate("checkpoint", {}).counts !=
        trace::generate("checkpoint", {{"seed", "2"}}).counts);
}

TEST_CASE("generate: bursts by the clock come by the clock", "[trace][generate]") {
  auto const t = trace::generate("", {{"regular", "yes"},
                                      {"burst", "10s"},
                                      {"every", "100s"},
                                      {"noise", "0"},
                                      {"length", "1000s"}});
  auto const rate = rates(t);
  int begins = 0;
  for (std::size_t i = 1; i < rate.size(); ++i) begins += rate[i] > 3000 && rate[i - 1] <= 3000;
  CHECK(begins == 10);
}

TEST_CASE("generate: the samples are what their header says made them", "[trace][generate]") {
  for (auto const& preset : trace::preset_table) {
    std::string const name = trace::command_name(preset);
    INFO(name);
    auto const stored = trace::read("traces/" + name + ".csv");
    auto const made = trace::generate(name, {});
    CHECK(stored.fact("provenance") == "sluice trace generate " + name);
    CHECK(stored.facts == made.facts);
    CHECK(stored.columns == made.columns);
    REQUIRE(stored.counts.size() == made.counts.size());
    double apart = 0;  // another libm may round otherwise
    for (std::size_t i = 0; i < made.counts.size(); ++i)
      for (std::size_t c = 0; c < made.columns.size(); ++c)
        apart = std::max(
            apart, std::abs(made.counts[i][c] - stored.counts[i][c]) - 1e-9 * made.counts[i][c]);
    CHECK(apart <= 1);
  }
}
