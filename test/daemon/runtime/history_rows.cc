// SPDX-License-Identifier: Apache-2.0
// One job, told about four times: by the counters of its memory (stat, --report), by the daemon's
// counters (/metrics), by its history over the local socket, and by the report that is made of it.
// Whatever its length, the looks, the window and the restarts of the daemon: the same sums.
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands/report/ask.h"
#include "commands/report/digest.h"
#include "lib/seeds.h"
#include "node/demand_meter.h"
#include "runtime/history_rows.h"
#include "segment/sums.h"

using namespace sluice;

namespace {

using node::unit_kind;
using runtime::history;
using random_source = std::mt19937_64;

constexpr std::int64_t second = 1'000'000'000;
constexpr runtime::history_reader root = {true, true, 0};

/// Log-uniform: as many jobs of a millisecond as of an hour.
std::int64_t some_length(random_source& random) {
  double const decades = std::uniform_real_distribution<>(6, std::log10(3600.0 * 1e9))(random);
  return static_cast<std::int64_t>(std::pow(10, decades));
}

/// A node daemon that looks at the job from when it was started on.
struct watcher {
  std::unique_ptr<history> past = std::make_unique<history>();
  node::tally counted;
  node::amounts told;
  segment::channel_sums first;

  explicit watcher(segment::channel_sums const& memory, std::int64_t now) : first(memory) {
    counted.start(memory);
    past->begin(now, double(now) / 1e9);
    past->end();
  }

  void look(segment::channel_sums const& memory, std::uint64_t served, std::int64_t span,
            std::int64_t now) {
    node::figures f;
    f.served_units = served * core::op_units;
    counted.add(f, span);
    counted.look(unit_kind::ops, memory, false, 8);
    node::amounts const done = counted.done();
    past->begin(now, double(now) / 1e9);
    runtime::history_look l = {"a", "gold", "metadata@s", 1001, unit_kind::ops};
    l.did.served = double(done.served - told.served);
    l.did.delayed = float(done.delayed - told.delayed);
    l.did.waited_s = float(double(done.waited_ns - told.waited_ns) / 1e9);
    past->put(l);
    past->end();
    told = done;
  }
};

struct told_sums {
  double served = 0, delayed = 0, waited_s = 0;
};

told_sums report_of(history const& past, double last_s) {
  report::question q;
  q.job = "a";
  q.last_s = last_s;
  auto const answer = runtime::answer_history(
      &past, root, {{"verb", "history"}, {"job", "a"}, {"interval", last_s <= 600 ? 1 : 10}});
  auto const d = report::digest_of(
      report::parse_result(report::result_of_history(answer, {}, q).dump(), "history"));
  told_sums out;
  for (auto const& u : d.uses)
    if (u.job == "a") out.served += u.served, out.waited_s += u.waited_s;
  for (auto const& g : d.gates) out.delayed += g.delayed;
  return out;
}

/// The job goes on from `begin` for so long, and the daemon looks now and then; returns the end.
struct life {
  segment::channel_sums memory;
  std::int64_t now;
  random_source& random;

  void go(watcher& d, std::int64_t length, unsigned looks) {
    std::int64_t const begin = now;
    for (unsigned i = 1; i <= looks; ++i) {
      std::int64_t const next = begin + length / looks * i + (i == looks ? length % looks : 0);
      std::uint64_t const served = random() % 3 == 0 ? 0 : random() % 5000;
      memory.calls += served;
      memory.amount += served;
      memory.delayed += served / 3;
      memory.waited_ns += random() % std::uint64_t(next - now + 1);
      d.look(memory, served, next - now, next);
      now = next;
    }
  }
};

}  // namespace

TEST_CASE("history: all sources tell the same sums", "[history]") {
  test::for_seeds(10'000, [](random_source& random) {
    life job{{},
             std::int64_t(1000 + random() % 100'000) * second + std::int64_t(random() % second),
             random};
    watcher d(job.memory, job.now);
    unsigned const lives = 1 + (random() % 4 == 0);
    std::int64_t begin = job.now;
    for (unsigned i = 0; i < lives; ++i) {
      if (i > 0) d = watcher(job.memory, begin = job.now);  // restarted
      job.go(d, some_length(random), 1 + random() % 40);
    }
    auto const calls = job.memory.calls - d.first.calls;
    auto const delayed = double(job.memory.delayed - d.first.delayed);
    double const waited_s = double(job.memory.waited_ns - d.first.waited_ns) / 1e9;
    REQUIRE(d.counted.done().served == calls);
    // A window that begins before the job, however much longer it is.
    double const lived_s = double(job.now - begin) / 1e9;
    double const last_s = lived_s + 11 + double(random() % 4000);
    bool const fits = lived_s < (last_s <= 600 ? 599 : 3590);
    if (!fits) return;
    told_sums const all = report_of(*d.past, last_s);
    CHECK(std::round(all.served) == double(calls));
    CHECK(std::abs(all.served - double(calls)) < 0.001);
    CHECK(std::abs(all.delayed - delayed) <= 0.5 + delayed * 1e-6);
    CHECK(std::abs(all.waited_s - waited_s) <= 1e-6 + waited_s * 1e-6);
    told_sums const part = report_of(*d.past, 1 + double(random() % 600));
    CHECK(part.served <= double(calls) + 0.001);
  });
}
