// SPDX-License-Identifier: Apache-2.0
// What a replay writes, `sluice report` reads.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "commands/replay/result.h"
#include "commands/report/result.h"

using namespace sluice;
using namespace sluice::replay;

TEST_CASE("the result of a replay is a result file, offered is the load", "[replay]") {
  trace::trace load;
  load.interval_s = 1;
  load.columns = {{"a", *trace::find_op("stat")}, {"a", *trace::find_op("read")}};
  load.counts = {{10, 65536 * 4}, {20.4, 0}, {0, 65536}};
  plan const p = make_plan(load, {});
  shared_counters book(p.shape());
  harvest seen(p, book);
  // The first thread sent 12 in second 1, the latest of them 0.5 s late; one failed.
  tally& t = *book.record(0, 0);
  t.submitted = 12;
  t.done = 11;
  t.failed = 1;
  t.delayed = 3;
  t.lag_ns_max = 500'000'000;
  t.took[core::histogram_step(1000)] = 12;
  book.worker(0).second[0] = 1;
  book.worker(0).last_error[0] = 2;
  seen.finish();
  options asked;
  asked.trace = "load.csv";
  asked.argv = {"sluice-replay", "load.csv"};
  asked.classes = {{"", "bronze"}, {"a", "gold"}};
  replay_result const o{asked, p, seen.times(), book, {{"title", "x"}}, 1000, 3, false};

  auto const r = report::parse_result(result_json(o).dump(), "result");
  CHECK(r.kind == "replay");
  CHECK(r.time.interval_s == 1);
  CHECK(r.time.start_unix_s == 1000.0);
  REQUIRE(r.jobs.size() == 1);
  CHECK(r.jobs[0].qos_class == "gold");
  auto values = [&](char const* op, char const* what) {
    for (auto const& row : r.time.rows)
      if (row.name == op && row.what == what) return row.values;
    return std::vector<double>{};
  };
  CHECK(values("getattr", "offered") == std::vector<double>{10, 20, 0});
  CHECK(values("read", "offered") == std::vector<double>{65536 * 4, 0, 65536});
  CHECK(values("getattr", "submitted") == std::vector<double>{0, 12});
  CHECK(values("getattr", "done") == std::vector<double>{0, 11});
  CHECK(values("getattr", "failed") == std::vector<double>{0, 1});
  CHECK(values("getattr", "lag") == std::vector<double>{0, 0.5});
  CHECK(values("getattr", "p50").back() == Approx(1000).epsilon(0.25));

  auto const json = result_json(o);
  CHECK(json["totals"][0]["offered"] == 30);
  CHECK(json["totals"][0]["last_error"] == "No such file or directory");
  CHECK(result_table(o).find("a getattr: 1 failed; the last one: No such file") !=
        std::string::npos);
}
