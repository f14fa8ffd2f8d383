// SPDX-License-Identifier: Apache-2.0
// The sampler: intervals without a gap, and nothing is counted twice or lost.
#include <catch2/catch.hpp>
#include <memory>

#include "calls.h"
#include "cli/recorder.h"
#include "cli/sampler.h"

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
