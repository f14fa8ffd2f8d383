// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>

#include "calls.h"
#include "node_world.h"
#include "runtime/dashboard.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr unsigned calls = 100;

/// What the history has of opens, by job.
std::map<std::string, double> opens_told(runtime::op_history const& h) {
  std::map<std::string, double> out;
  runtime::op_row row;
  for (std::size_t i = 0; i < h.size(); ++i)
    if (h.read(i, {true, true, 0}, true, row) && row.op == "open" &&
        row.unit == runtime::op_unit::operations)
      out[row.name.job] =
          std::accumulate(row.done.begin(), row.done.end(), row.open,
                          [](double a, double b) { return a + (std::isnan(b) ? 0 : b); });
  return out;
}

void count_opens(node::job& j) {
  (*j.map).head.shards_used.store(1);
  (*j.map).owned[0].call[static_cast<unsigned>(call::open)].calls.store(calls);
}

}  // namespace

TEST_CASE("jobs of who has used up his part of the loop's time are not read", "[node][history]") {
  if (geteuid() != 0) return;
  constexpr uid_t his = 65011, hers = 65012;
  constexpr std::int64_t hour_ns = 3'600'000'000'000;
  runtime::dashboard board({});
  world w;
  w.services.board = &board;
  w.start();
  count_opens(w.join("a", getpid(), his));
  count_opens(w.join("b", getpid(), hers));
  w.s->loop.figures.charge(his, hour_ns);
  w.pass(1'000 * ms);
  w.s->tell(w.when);
  CHECK(opens_told(board.ops) == std::map<std::string, double>{{"b", calls}});
  w.s->loop.figures.charge(his, -hour_ns);
  w.pass(1'000 * ms);
  w.s->tell(w.when);
  CHECK(opens_told(board.ops) == std::map<std::string, double>{{"a", calls}, {"b", calls}});
}
