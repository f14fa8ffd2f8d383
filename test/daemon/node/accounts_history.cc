// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>

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

constexpr unsigned jobs = 20, calls = 100;

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

void fill_shards(node::job& j) {
  j.memory().head.shards_used.store(abi::owned_shards);
  j.memory().head.commons_used.store(1);
  j.memory().owned[abi::owned_shards - 1].call[static_cast<unsigned>(call::open)].calls.store(
      calls);
}

}  // namespace

TEST_CASE("jobs that claim all their shards are read over some turns", "[node][history]") {
  runtime::dashboard board({});
  world w;
  w.services.board = &board;
  w.start();
  pid_t const child = fork();
  if (child == 0) pause(), _exit(0);
  fill_shards(w.join("ends", child));
  for (unsigned i = 1; i < jobs; ++i) fill_shards(w.join(("j" + std::to_string(i)).c_str()));
  w.pass(1'000 * ms);
  w.s->tell(w.when);
  CHECK(opens_told(board.ops).empty());  // not all of them are read
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (int i = 0; i < 100 && w.find("ends") != nullptr; ++i) w.pass(1'000 * ms);
  REQUIRE(w.find("ends") == nullptr);
  CHECK(opens_told(board.ops).contains("ends"));
  CHECK(opens_told(board.ops).size() < jobs);
  unsigned turns = 0;
  for (; turns < jobs && opens_told(board.ops).size() != jobs; ++turns) {
    w.pass(1'000 * ms);
    w.s->tell(w.when);
  }
  CHECK(turns > 1);
  for (auto const& [job, told] : opens_told(board.ops)) CHECK(told == calls);
}
