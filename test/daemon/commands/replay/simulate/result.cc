// SPDX-License-Identifier: Apache-2.0
// What a simulation writes: the result format as its reader wants it, sums that agree with each
// other, and errors that say what to do.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "commands/replay/simulate/result.h"
#include "commands/replay/simulate/whatif.h"
#include "commands/report/result.h"
#include "lib/scratch.h"

namespace {

using namespace sluice;

constexpr char const* policy_text = R"({"targets": {"scratch": {"path": "/scratch",
    "capacity": {"metadata": "100/s", "data": "1KiB/s"}}, "home": {"path": "/home"}},
  "classes": {"gold": {"scratch": {"metadata": {"reservation": "50/s", "limit": "80/s"}}}}})";

/// 10000 intervals of a second: more than a result has. b is done before the end.
trace::trace long_trace() {
  trace::trace t;
  t.interval_s = 1;
  t.start_unix_s = 1000;
  t.facts = {{"title", "two jobs"}};
  for (char const* op : {"open", "close", "sync", "write"})
    t.columns.push_back({"a", *trace::find_op(op)});
  t.columns.push_back({"b", *trace::find_op("getattr")});
  for (int i = 0; i < 10000; ++i)
    t.counts.push_back({i % 7 * 10.0, i % 5 * 10.0, 3, 500.0 + i % 2, i < 5000 ? 60.0 : 0.0});
  return t;
}

struct files {
  test::scratch tmp;
  std::string policy = tmp.dir + "/policy.json";
  std::string out = tmp.dir + "/out.json";
  files() { std::ofstream(policy) << policy_text; }
  simulation::options options() const {
    simulation::options o;
    o.policy_file = policy;
    o.trace_file = "long";
    o.load = long_trace();
    o.output = out;
    o.quiet = true;
    return o;
  }
};

double total(report::result const& r, std::string const& job, std::string const& name,
             std::string const& what) {
  for (auto const& row : r.time.rows) {
    if (row.job != job || row.name != name || row.what != what) continue;
    double sum = 0;
    for (double v : row.values) sum += v;
    return sum;
  }
  FAIL("no row " << job << " " << name << " " << what);
  return 0;
}

}  // namespace

TEST_CASE("a simulation writes a result file that the report reads", "[whatif]") {
  files const f;
  simulation::options o = f.options();
  o.classes = {"a=gold"};
  REQUIRE(simulation::run(o) == 0);
  report::result const r = report::read_result(f.out);
  CHECK(r.kind == "simulation");
  CHECK(r.time.start_unix_s == 1000);
  CHECK(r.time.interval_s == 4);
  CHECK(r.time.intervals == 2500);
  REQUIRE(r.jobs.size() == 2);
  CHECK(r.jobs[0].qos_class == "gold");
  CHECK(r.jobs[1].ended_s == Approx(6000).margin(20));
  CHECK(r.rules.size() == 3);
  CHECK(r.facts.front().second == "two jobs");
  double const offered = total(r, "a", "metadata@scratch", "offered");
  CHECK(offered == Approx(total(r, "a", "open", "offered") + total(r, "a", "close", "offered")));
  CHECK(total(r, "a", "metadata@scratch", "done") ==
        Approx(total(r, "a", "open", "done") + total(r, "a", "close", "done")).epsilon(1e-4));
  CHECK(total(r, "a", "open", "done") == Approx(total(r, "a", "open", "offered")).epsilon(1e-3));
  CHECK(total(r, "a", "sync", "done") == Approx(30000));
  CHECK(total(r, "a", "data@scratch", "done") == Approx(total(r, "a", "write", "done")));
  CHECK(total(r, "", "metadata@scratch", "capacity") == Approx(100 * 2500));
  CHECK(total(r, "a", "metadata@scratch", "limit") == Approx(80 * 2500));
}

TEST_CASE("the target of a simulation is found by name or path, or asked for", "[whatif]") {
  files const f;
  simulation::options o = f.options();
  for (char const* target : {"", "scratch", "/scratch", "/scratch/deep/er"}) {
    o.target = target;
    CHECK(simulation::run(o) == 0);
  }
  for (char const* target : {"home", "/home", "/scratchy"}) {
    std::filesystem::remove(f.out);
    o.target = target;
    CHECK_THROWS_WITH(simulation::run(o), Catch::Contains("it has scratch"));
    CHECK_FALSE(std::filesystem::exists(f.out));
  }
  std::ofstream(f.policy) << R"({"targets": {"scratch": {"path": "/scratch"}}})";
  CHECK_THROWS_WITH(simulation::run(o), Catch::Contains("no target has a capacity"));
}
