// SPDX-License-Identifier: Apache-2.0
// The table of metrics: what was published is what is read, in the text format.
#include "runtime/metric_table.h"

#include <catch2/catch.hpp>

#include <regex>

using namespace sluice;
using runtime::metric;
using runtime::metric_table;

namespace {

constexpr std::int64_t second = 1'000'000'000;

bool has(metric_table const& t, std::string const& line) {
  return ("\n" + t.text()).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("control metrics: gauges, counters, labels") {
  metric_table t;
  t.set(metric::jobs, {"gold"}, 3);
  t.set(metric::jobs, {"br\"on\\z\ne"}, 1);
  t.add(metric::cycles_total);
  t.add(metric::cycles_total, 4);
  CHECK(t.text().empty());
  t.publish(5 * second);
  CHECK(has(t, "sluice_jobs{class=\"gold\"} 3"));
  CHECK(has(t, "sluice_jobs{class=\"br\\\"on\\\\z\\ne\"} 1"));
  CHECK(has(t, "sluice_cycles_total 5"));
  CHECK(has(t, "# TYPE sluice_cycles_total counter"));
  t.remove(metric::jobs, {"gold"});
  t.publish(6 * second);
  CHECK(!has(t, "sluice_jobs{class=\"gold\"} 3"));
}

TEST_CASE("control metrics: histograms") {
  metric_table t;
  core::histogram_counts h = {};
  for (std::uint64_t ns : {1'000u, 2'000u, 3'000'000u}) ++h.count[core::histogram_step(ns)];
  h.count[core::histogram_step(60 * second)] = 4;
  t.set(metric::wait_duration_seconds, {"gold"}, runtime::distribution::of(h, 5 * second));
  t.publish(5 * second);
  std::string const name = "sluice_wait_duration_seconds";
  CHECK(has(t, "# TYPE " + name + " histogram"));
  CHECK(has(t, name + "_bucket{class=\"gold\",le=\"1.024e-06\"} 1"));
  CHECK(has(t, name + "_bucket{class=\"gold\",le=\"4.096e-06\"} 2"));
  CHECK(has(t, name + "_bucket{class=\"gold\",le=\"0.001048576\"} 2"));
  CHECK(has(t, name + "_bucket{class=\"gold\",le=\"0.004194304\"} 3"));
  CHECK(has(t, name + "_bucket{class=\"gold\",le=\"17.179869184\"} 3"));
  CHECK(has(t, name + "_bucket{class=\"gold\",le=\"+Inf\"} 7"));
  CHECK(has(t, name + "_sum{class=\"gold\"} 5"));
  CHECK(has(t, name + "_count{class=\"gold\"} 7"));
}

TEST_CASE("control metrics: every bound is the edge of a step") {
  for (std::size_t i = 0; i < runtime::distribution::bounds; ++i) {
    std::uint64_t const bound = runtime::distribution::bound_ns(i);
    CHECK(core::histogram_low(core::histogram_step(bound)) == bound);
  }
}

TEST_CASE("control metrics: at most once a second") {
  metric_table t;
  t.set(metric::processes, 1);
  t.publish(10 * second);
  t.set(metric::processes, 2);
  t.publish(10 * second + second / 2);
  CHECK(has(t, "sluice_processes 1"));
  t.publish(11 * second);
  CHECK(has(t, "sluice_processes 2"));
}

TEST_CASE("control metrics: series of jobs only when asked for, and they expire") {
  metric_table without, with(true);
  for (auto* t : {&without, &with}) {
    t->set(metric::job_served_bytes_total, {"1.a", "7", "gold", "data", "scratch"}, 9);
    t->set(metric::jobs, {"gold"}, 1);
    t->publish(1 * second);
  }
  char const* const line =
      "sluice_job_served_bytes_total{job_id=\"1.a\",uid=\"7\",class=\"gold\",resource=\"data\","
      "target=\"scratch\"} 9";
  CHECK(!without.has_jobs());
  CHECK(!has(without, line));
  CHECK(has(with, line));
  with.publish(50 * second);
  CHECK(has(with, line));
  with.publish(62 * second);
  CHECK(!has(with, line));
  CHECK(has(with, "sluice_jobs{class=\"gold\"} 1"));
}

TEST_CASE("control metrics: health") {
  metric_table t;
  std::string why;
  CHECK(!t.health(why));
  CHECK(why == "starting");
  t.publish(1);
  CHECK(t.health(why));
  t.publish(2, false, "no parent");
  CHECK(!t.health(why));
  CHECK(why == "no parent");
}

TEST_CASE("control metrics: names keep the rules that promtool does not know") {
  struct row {
    std::string name, kind, labels, help;
  };
  row const rows[] = {
#define METRIC(name, kind, labels, help) {#name, #kind, labels, help},
#include "runtime/metrics.def"
  };
  for (auto const& r : rows) {
    CAPTURE(r.name);
    CHECK((r.kind == "counter") == r.name.ends_with("_total"));
    CHECK((r.kind == "counter" || r.kind == "gauge" || r.kind == "histogram"));
    CHECK((r.kind != "histogram" || r.name.ends_with("_seconds")));
    CHECK(std::regex_match(r.labels, std::regex("([a-z_]+(,[a-z_]+)*)?")));
    CHECK(!std::regex_search(r.labels, std::regex("(^|,)(job|instance)(,|$)")));
    CHECK(r.help.ends_with("."));
    CHECK(r.name.starts_with("job_") == r.labels.starts_with("job_id"));
  }
}
