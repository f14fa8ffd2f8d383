// SPDX-License-Identifier: Apache-2.0
// What a calibration measures, how many threads it tries, which places it visits, and how much of a
// file system it takes.
#include <catch2/catch.hpp>
#include <set>

#include "commands/calibrate/climb.h"
#include "commands/calibrate/ground.h"
#include "commands/calibrate/metadata.h"
#include "commands/calibrate/plan.h"
#include "commands/calibrate/requests.h"
#include "policy/cost_file.h"

using namespace sluice;
using namespace sluice::calibrate;

namespace {

constexpr std::uint64_t mib = 1 << 20;

abilities able(bool is_short, bool direct = true, bool sectors = true) {
  return {direct, sectors, 1024 * mib, is_short};
}

double sum_s(std::vector<step> const& plan, timing const& t) {
  double sum = 0;
  for (step const& s : plan)
    for (unsigned round = 0; round < s.rounds; ++round) sum += expected_s(s, round, t);
  return sum;
}

step const* find(std::vector<step> const& plan, std::string const& id) {
  for (step const& s : plan)
    if (s.id == id) return &s;
  return nullptr;
}

/// The threads that a climb ends with when the rate follows `rate`.
template <class Rate>
unsigned climbed(unsigned first, unsigned most, Rate rate) {
  climb up(first, most);
  while (up.next() != 0) up.saw(rate(up.next()));
  return up.best();
}

}  // namespace

TEST_CASE("calibrate plan: every size, both ways, each step once", "[calibrate]") {
  auto const plan = plan_of(able(false));
  std::set<std::string> ids;
  for (step const& s : plan) {
    INFO(s.id);
    CHECK(ids.insert(s.id).second);
    CHECK_FALSE(s.works.empty());
  }
  for (char const* op : {"read", "write"})
    for (char const* how : {"aligned", "unaligned"})
      for (unsigned i = 0; i < core::cost_points; ++i)
        CHECK(ids.count(std::string(op) + "/" + how + "/" +
                        std::to_string(core::cost_point_bytes(i))) == 1);
  for (auto const& op : metadata_ops()) CHECK(ids.count("op/" + op) == 1);
  for (auto const& s : plan)
    if (s.kind == step_kind::side)
      CHECK(std::count(policy::side_kinds().begin(), policy::side_kinds().end(), s.side_kind) == 1);
  CHECK(find(plan, "write/aligned/4096")->works[0].by == cache::direct);
  CHECK(find(plan, "write/unaligned/4096")->works[0].by == cache::cold);
}

TEST_CASE("calibrate plan: it fits into the time that is promised", "[calibrate]") {
  CHECK(sum_s(plan_of(able(false)), timing_of(able(false))) < 550);
  CHECK(sum_s(plan_of(able(true)), timing_of(able(true))) < 29);
}

TEST_CASE("calibrate plan: what the file system cannot do goes through the page cache",
          "[calibrate]") {
  for (auto const& s : plan_of(able(false, false, false)))
    for (work const& w : s.works)
      if (w.moves_bytes()) CHECK(w.by == cache::cold);
  auto const pages = plan_of(able(false, true, false));
  CHECK(find(pages, "read/aligned/512")->works[0].by == cache::cold);
  CHECK(find(pages, "read/aligned/4096")->works[0].by == cache::direct);
  CHECK(find(pages, "read/unaligned/4096")->works[0].by == cache::cold);
  CHECK(find(pages, "direct_unaligned_write/4096") == nullptr);
}

TEST_CASE("calibrate plan: sizes that a small file has no places for are left out", "[calibrate]") {
  auto a = able(false);
  a.file_bytes = 32 * mib;
  auto plan = plan_of(a);
  CHECK(find(plan, "read/aligned/4194304") != nullptr);
  a.file_bytes = 16 * mib;
  plan = plan_of(a);
  CHECK(find(plan, "read/aligned/4194304") == nullptr);
  CHECK(find(plan, "read/aligned/2097152") != nullptr);
}

TEST_CASE("calibrate plan: a part of it by the names of its steps", "[calibrate]") {
  auto const plan = plan_of(able(true));
  CHECK(only(plan, {}).size() == plan.size());
  CHECK(only(plan, {"read/aligned"}).size() == 7);
  CHECK(only(plan, {"read/aligned/4096", "op/stat"}).size() == 3);  // statfs, too
  CHECK(only(plan, {"nonsense"}).empty());
  CHECK(drift_plan(able(true)).size() == 3);
}

TEST_CASE("calibrate climb: it ends where more threads do not help", "[calibrate]") {
  CHECK(climbed(4, 128, [](unsigned n) { return std::min(n, 16U) * 100.0; }) == 16);
  CHECK(climbed(4, 128, [](unsigned n) { return n * 1.0; }) == 128);
  CHECK(climbed(4, 100, [](unsigned n) { return n * 1.0; }) == 100);
  CHECK(climbed(4, 128, [](unsigned) { return 50.0; }) == 4);
  CHECK(climbed(4, 128, [](unsigned n) { return n == 8 ? 102.0 : 100.0; }) == 8);
  CHECK(climbed(4, 2, [](unsigned) { return 50.0; }) == 2);
  CHECK(climbed(4, 128, [](unsigned) { return 0.0; }) == 0);
}

TEST_CASE("calibrate shuffle: each place once, then again", "[calibrate]") {
  for (std::uint64_t const count : {1, 2, 3, 8, 13, 1000, 4097})
    for (std::uint64_t const seed : {0ull, 1ull, 0xfedcba9876543210ull}) {
      INFO(count << " places, seed " << seed);
      shuffle order(count, seed);
      std::set<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < count; ++i) seen.insert(order.next());
      CHECK(seen.size() == count);
      CHECK(*seen.rbegin() == count - 1);
      CHECK(seen.count(order.next()) == 1);
    }
}

TEST_CASE("calibrate room: a margin stays free", "[calibrate]") {
  room r;
  r.all_bytes = 100'000 * mib;
  r.free_bytes = 50'000 * mib;
  CHECK(margin_of(r) == 5'000 * mib);
  CHECK(file_bytes_of(r) == 1024 * mib);
  r.is_short = true;
  CHECK(file_bytes_of(r) == 128 * mib);
  r.free_bytes = 5'100 * mib;  // 100 MiB above the margin: half for the file
  CHECK(file_bytes_of(r) == 48 * mib);
  r.free_bytes = 5'060 * mib;
  CHECK(file_bytes_of(r) == 0);
  r.free_bytes = 0;
  CHECK(file_bytes_of(r) == 0);
  r.free_bytes = 50'000 * mib;
  r.wanted_bytes = 4096 * mib;
  CHECK(file_bytes_of(r) == 4096 * mib);
  r.wanted_bytes = 40'000 * mib;
  CHECK(file_bytes_of(r) == 0);
}
