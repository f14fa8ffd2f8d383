// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.h"
#include "commands/replay/load.h"
#include "commands/replay/plan.h"

using namespace sluice;
using namespace sluice::replay;

namespace {

unsigned op(char const* name) { return *trace::find_op(name); }

trace::trace two_jobs() {
  trace::trace t;
  t.interval_s = 60;
  t.columns = {{"a", op("open")}, {"a", op("stat")}, {"b", op("open")}, {"b", op("mkdir")}};
  t.counts = {{600, 60, 120, 0}, {0, 60, 240, 0}};
  return t;
}

}  // namespace

TEST_CASE("time is compressed at equal rates", "[replay]") {
  load_settings s;
  s.time_scale = 60;
  auto const load = shape(two_jobs(), s);
  CHECK(load.interval_s == Approx(1));
  REQUIRE(load.columns.size() == 3);  // mkdir is never asked for
  CHECK(load.counts[0] == std::vector<double>{10, 1, 2});
  s.rate_scale = 0.5;
  CHECK(shape(two_jobs(), s).counts[1] == std::vector<double>{0, 0.5, 2});
}

TEST_CASE("jobs: those of the trace, the first ones, or copies", "[replay]") {
  load_settings s;
  s.jobs = 1;
  CHECK(shape(two_jobs(), s).jobs() == std::vector<std::string>{"a"});
  s.jobs = 5;
  auto const many = shape(two_jobs(), s);
  CHECK(many.jobs() == std::vector<std::string>{"a", "b", "a-2", "b-2", "a-3"});
  CHECK(many.counts[0] == std::vector<double>{600, 60, 120, 600, 60, 120, 600, 60});
  auto none = two_jobs();
  for (auto& c : none.columns) c.job.clear();
  s.jobs = 2;
  auto const named = shape(none, s);
  CHECK(named.jobs() == std::vector<std::string>{"job1", "job2"});
  CHECK(named.counts[0] == std::vector<double>{720, 60, 720, 60});  // opens of both columns
}

TEST_CASE("loops repeat, a stagger moves later jobs, also by parts of an interval", "[replay]") {
  load_settings s;
  s.loops = 2;
  s.stagger_s = 90;
  auto const load = shape(two_jobs(), s);
  REQUIRE(load.counts.size() == 6);
  std::vector<double> a, b;
  for (auto const& row : load.counts) {
    a.push_back(row[0]);
    b.push_back(row[2]);
  }
  CHECK(a == std::vector<double>{600, 0, 600, 0, 0, 0});
  CHECK(b == std::vector<double>{0, 60, 180, 180, 180, 120});
}

TEST_CASE("one job of a load, and a name that is none", "[replay]") {
  auto const one = only_job(shape(two_jobs(), {}), "b");
  CHECK(one.columns == std::vector<trace::column>{{"b", op("open")}});
  CHECK(one.counts == std::vector<std::vector<double>>{{120}, {240}});
  CHECK_THROWS_WITH(only_job(two_jobs(), "c"), "--only-job c: no such job; there is a, b");
}

TEST_CASE("a load without operations and one too long are refused", "[replay]") {
  auto empty = two_jobs();
  for (auto& row : empty.counts) row.assign(row.size(), 0);
  CHECK_THROWS_AS(shape(empty, {}), error);
  load_settings s;
  s.loops = 100'000'000;
  CHECK_THROWS_AS(shape(two_jobs(), s), error);
}

TEST_CASE("a plan: jobs x processes x threads, each op of a stream with one of them", "[replay]") {
  auto const load = shape(two_jobs(), {});
  plan_settings s;
  s.processes = 2;
  s.threads_per_op = 3;
  plan const per_op = make_plan(load, s);
  CHECK(per_op.workers.size() == 2 * 3 * 3);  // 2 processes, 3 threads, 3 streams
  for (auto const& w : per_op.workers) {
    REQUIRE(w.shares.size() == 1);
    CHECK(w.shares[0].of_it.of == 6);
    CHECK(w.shares[0].of_it.index < 6);
    CHECK(per_op.streams[w.shares[0].stream].job == w.job);
  }
  s.threads = 4;
  plan const shared = make_plan(load, s);
  CHECK(shared.workers.size() == 2 * 2 * 4);
  CHECK(shared.shape().ops_most == 2);
  CHECK(shared.shape().processes == 4);
  CHECK(shared.fingerprint() == make_plan(load, s).fingerprint());
  CHECK(shared.fingerprint() != per_op.fingerprint());
  CHECK(shared.has(0, core::op::stat));
  CHECK_FALSE(shared.has(1, core::op::stat));
}
