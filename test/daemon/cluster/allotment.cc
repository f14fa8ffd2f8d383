// SPDX-License-Identifier: Apache-2.0
// One allocation after another over the same rows.
#include "cluster/allotment.h"

#include <catch2/catch.hpp>

using namespace sluice;

TEST_CASE("allotment: a job on one child has no bound of when it was on several", "[cluster]") {
  cluster::policy_table p;
  cluster::supply_row row;
  row.key = 7;
  row.capacity = 1'000'000;
  p.supplies.push_back(row);
  p.classes.push_back({0, "", {{}}});
  cluster::roster r(p);
  wire::report report;
  report.supplies = {7};
  report.lease.supply = {{}};
  wire::stream_report& s = report.streams.emplace_back();
  s.job = wire::job_key(1000, "job");
  s.blocked_ppm = 1000;
  for (unsigned c : {0u, 1u, 2u}) {
    s.waiters = c == 2 ? 1000 : 10;
    r.meet(c, 1);
    r.take(c, report, 1);
    r.children[c].live = true;
  }
  auto const algorithm = policies::find_algorithm("proportional")->make();
  cluster::rate const capacity[] = {row.capacity};
  cluster::allotment a;
  a.run(r, capacity, algorithm.get(), {}, 1);
  std::uint32_t const job = r.job_of(s.job);
  REQUIRE(r.at(job, 0).most_weight < policies::unbounded);
  r.children[1].live = r.children[2].live = false;
  a.run(r, capacity, algorithm.get(), {}, 2);
  CHECK(r.at(job, 0).most_weight == policies::unbounded);
}
