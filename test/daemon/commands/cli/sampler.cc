// SPDX-License-Identifier: Apache-2.0
// The sampler: intervals without a gap, and nothing is counted twice or lost.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "calls.h"
#include "commands/cli/recorder.h"
#include "commands/cli/sampler.h"
#include "commands/cli/timeline.h"

using namespace sluice;

namespace {

constexpr std::int64_t ms = 1'000'000;

unsigned row_of(core::op op) {
  for (unsigned i = 0; i < call_count; ++i)
    if (call_table[i].op == op) return i;
  return 0;
}

struct world {
  std::unique_ptr<abi::segment> s = std::make_unique<abi::segment>();
  std::vector<cli::sample> told;

  world() {
    s->rules.target_count = 1;  // elsewhere
    s->head.commons_used.store(1);
  }

  void open_files(std::uint64_t n) { s->common[0].call[row_of(core::op::open)].calls += n; }
  std::uint64_t opens(std::size_t i) const {
    return told.at(i).op.at(static_cast<unsigned>(core::op::open)).calls;
  }
};

}  // namespace

TEST_CASE("sampler: differences per interval", "[trace][sampler]") {
  world w;
  w.open_files(1000);  // before us
  cli::sampler samples(*w.s, 100 * ms, 0);
  samples.listen([&](cli::sample const& s) { w.told.push_back(s); });
  w.open_files(3);
  CHECK(samples.look(50 * ms) == 100 * ms);
  CHECK(w.told.empty());
  w.open_files(4);
  CHECK(samples.look(101 * ms) == 200 * ms);
  REQUIRE(w.told.size() == 1);
  CHECK(w.opens(0) == 7);
  w.open_files(10);
  CHECK(samples.look(520 * ms) == 600 * ms);  // four intervals late: 10 are split
  REQUIRE(w.told.size() == 5);
  CHECK(w.opens(1) + w.opens(2) + w.opens(3) + w.opens(4) == 10);
  CHECK(w.opens(4) >= 2);
  for (std::size_t i = 0; i < w.told.size(); ++i) CHECK(w.told[i].index == i);
  samples.finish(530 * ms);
  CHECK(w.told.size() == 5);  // nothing happened since
  w.open_files(1);
  samples.finish(540 * ms);
  CHECK(w.opens(5) == 1);
}

TEST_CASE("sampler: the time in the calls goes to the interval of its look", "[trace][sampler]") {
  world w;
  w.s->rules.target_count = 2;
  unsigned const open = static_cast<unsigned>(core::op::open);
  w.s->time[1][open].took_ns = 5'000 * ms;  // before us
  cli::sampler samples(*w.s, 100 * ms, 0);
  cli::timeline time(*w.s, samples.interval_s());
  samples.listen([&](cli::sample const& each) { time.take(each); });
  w.s->time[0][open].took_ns += 30 * ms;
  samples.look(100 * ms);
  w.s->time[1][open].took_ns += 50 * ms;
  w.s->time[2][open].took_ns += 70 * ms;  // of no target that there is
  samples.look(200 * ms);
  w.s->time[1][open].took_ns += 60 * ms;
  samples.look(400 * ms);  // late by one
  auto const rows = time.result(0)["rows"];
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["what"] == "took");
  CHECK(rows[0]["unit"] == "s");
  CHECK(rows[0]["op"] == "open");
  CHECK(rows[0]["values"] == nlohmann::ordered_json({0.03, 0.05, 0.03, 0.03}));
}

namespace {

/// Points of a run so long: one open a second, and a look whenever one is due.
nlohmann::ordered_json points_of(std::int64_t run_ms, std::size_t& looks) {
  world w;
  cli::sampler samples(*w.s, cli::timeline::first_interval_ns, 0, cli::timeline::most_points);
  cli::timeline time(*w.s, samples.interval_s(), cli::timeline::most_points);
  samples.listen([&](cli::sample const& each) { time.take(each); });
  for (std::int64_t at = 0; at < run_ms * ms; ++looks) {
    w.open_files(1);
    at = samples.look(at);
  }
  w.open_files(1);
  samples.finish(run_ms * ms);
  return time.result(0);
}

}  // namespace

TEST_CASE("timeline: short runs have fine points, long ones some hundred", "[trace][sampler]") {
  std::int64_t const length_ms = GENERATE(300, 3'000, 8'000, 8'001, 20'000, 3'600'000, 86'400'000);
  std::size_t looks = 0;
  auto const t = points_of(length_ms, looks);
  INFO(length_ms);
  double const step_s = t["interval_s"];
  auto const& values = t["rows"][0]["values"];
  CHECK(values.size() <= cli::timeline::most_points);
  CHECK(values.size() >= std::min<std::size_t>(std::size_t(length_ms) / 20, 100));
  CHECK(step_s * double(values.size()) >= double(length_ms) / 1e3 - step_s);
  std::uint64_t sum = 0;
  for (auto const& v : values) sum += v.get<std::uint64_t>();
  CHECK(sum == looks + 1);  // nothing is lost when points merge
  CHECK(looks <= 400 + 201 * std::size_t(std::log2(std::max(1.0, double(length_ms) / 8e3)) + 1));
}

TEST_CASE("timeline: a run that was stopped for a day is told in one look", "[trace][sampler]") {
  world w;
  cli::sampler samples(*w.s, 20 * ms, 0, 400);
  samples.listen([&](cli::sample const& s) { w.told.push_back(s); });
  w.open_files(1'000'000);
  samples.look(86'400'000 * ms);
  CHECK(w.told.size() < 400 * 20);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < w.told.size(); ++i) sum += w.opens(i);
  CHECK(sum == 1'000'000);
}

TEST_CASE("sampler: a counter that goes back counts as nothing", "[trace][sampler]") {
  world w;
  w.open_files(1000);
  cli::sampler samples(*w.s, 100 * ms, 0);
  samples.listen([&](cli::sample const& s) { w.told.push_back(s); });
  w.s->common[0].call[row_of(core::op::open)].calls = 0;
  samples.look(100 * ms);
  REQUIRE(w.told.size() == 1);
  CHECK(w.opens(0) == 0);
}

TEST_CASE("recorder: a program that runs for days gets longer intervals", "[trace][sampler]") {
  cli::recorder record(1);
  cli::sample s;
  s.op.resize(core::op_count);
  s.op[static_cast<unsigned>(core::op::open)].calls = 2;
  s.op[static_cast<unsigned>(core::op::stat)].calls = 1;
  s.op[static_cast<unsigned>(core::op::access)].calls = 1;
  for (s.index = 0; s.index < 200'001; ++s.index) record.take(s);
  auto const t = record.result({"app", "x"}, 5);
  CHECK(t.interval_s == 4);
  REQUIRE(t.counts.size() == 50'001);
  CHECK(t.columns.size() == 2);
  CHECK(t.counts.front() == std::vector<double>{8, 8});
  CHECK(t.counts.back() == std::vector<double>{2, 2});
  CHECK(t.fact("title") == "app x");
}
