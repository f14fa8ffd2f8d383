// SPDX-License-Identifier: Apache-2.0
#include "node/loop_time.h"

#include <catch2/catch.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "node/node_role.h"
#include "node_world.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::int64_t hour_ns = 3'600'000'000'000;
constexpr uid_t his = 1, hers = 2;

struct fixture {
  std::int64_t now_ns = 1'000 * ms;
  node::loop_time time{[this] { return now_ns; }};
  /// A look that takes so long. False: it was not made.
  bool look(uid_t owner, std::int64_t took_ns) {
    return time.spend(owner, [&] { now_ns += took_ns; });
  }
};

struct fake_job {
  uid_t owner;
  unsigned looks = 0;
};

std::string background_policy(std::string const& path) {
  return R"({"roles": {"db": {"flush": {"thread": "bg"}, "foreground": {"rest": true}}},
    "targets": {"t": {"path": ")" +
         path + R"(", "capacity": {"data": "100MB/s"}}},
    "classes": {"gold": {"t": {"data": {"algorithm": "tail-latency", "foreground": "20MB/s",
                                        "floor": "5MB/s"}}}}})";
}

/// A thread waits for what the job's first stream has booked.
void wait_for_much(node::job& j) {
  auto& s = as_shared((*j.map));
  unsigned const channel = j.streams.at(0).channel;
  s.head.shards_used = 1;
  s.owned[0].waiting.channel = channel + 1;
  s.bucket[channel].booked += std::uint64_t{1} << 40;
}

/// The same in the eyes of whoever reads counters.
void move(node::job& j, std::uint64_t bytes) {
  auto& s = as_shared((*j.map));
  s.head.shards_used = 1;
  for (auto& c : s.owned[0].channel) c.amount += bytes, ++c.calls;
}

}  // namespace

TEST_CASE("who takes long is looked at less, and nobody else", "[node][loop_time]") {
  fixture f;
  f.time.set_owners({his, hers});
  CHECK(f.look(his, 70 * ms));
  CHECK_FALSE(f.look(his, ms));
  CHECK(f.look(hers, ms));
  f.now_ns += 2'300 * ms;  // 25 ms of each second
  CHECK_FALSE(f.look(his, ms));
  f.now_ns += 200 * ms;
  CHECK(f.look(his, ms));
}

TEST_CASE("a machine that stood still is nobody's debt for long", "[node][loop_time]") {
  fixture f;
  CHECK(f.look(his, 0));
  f.time.charge(his, 3'600'000 * ms);
  f.now_ns += 60'000 * ms;
  CHECK_FALSE(f.look(his, ms));
  f.now_ns += 25'000 * ms;
  CHECK(f.look(his, ms));
  f.time.spend_anyhow(his, [&] { f.now_ns += 100 * ms; });
  CHECK_FALSE(f.look(his, ms));
}

TEST_CASE("who ends his jobs and begins others has the same debt", "[node][loop_time]") {
  fixture f;
  f.time.set_owners({his});
  CHECK(f.look(his, 70 * ms));
  f.time.set_owners({});
  f.time.set_owners({his});
  CHECK_FALSE(f.look(his, ms));
  f.now_ns += 3'000 * ms;
  f.time.set_owners({});
  CHECK(f.look(his, ms));
}

TEST_CASE("what all owners take is a quarter of the time at most", "[node][loop_time]") {
  fixture f;
  std::set<uid_t> all;
  for (uid_t u = 0; u < 40; ++u) all.insert(u);
  f.time.set_owners(all);
  for (uid_t u : all) f.look(u, 10 * ms);  // what was saved
  std::int64_t const began_ns = f.now_ns;
  std::int64_t taken_ns = 0;
  while (f.now_ns - began_ns < 60'000 * ms) {
    for (uid_t u : all)
      if (f.look(u, 5 * ms)) taken_ns += 5 * ms;
    f.now_ns += ms;
  }
  CHECK(taken_ns < (f.now_ns - began_ns) * 30 / 100);
  CHECK(taken_ns > (f.now_ns - began_ns) * 20 / 100);
}

TEST_CASE("time that is not used is saved for a moment", "[node][loop_time]") {
  fixture f;
  CHECK(f.look(his, 0));
  f.now_ns += 3'600'000 * ms;
  CHECK(f.look(his, 12 * ms));
  CHECK_FALSE(f.look(his, ms));
  f.now_ns -= 10'000 * ms;  // no clock does that; nothing is lost
  CHECK_FALSE(f.look(his, ms));
  f.now_ns += 10'000 * ms;
  f.now_ns += 100 * ms;
  CHECK(f.look(his, ms));
}

TEST_CASE("all jobs of an owner have their turn", "[node][loop_time]") {
  fixture f;
  std::vector<std::unique_ptr<fake_job>> jobs;
  for (int i = 0; i < 32; ++i) jobs.push_back(std::make_unique<fake_job>(fake_job{his}));
  jobs.push_back(std::make_unique<fake_job>(fake_job{hers}));
  for (int turn = 0; turn < 1000; ++turn) {
    f.time.each(jobs, [&](fake_job& j) {
      ++j.looks;
      if (j.owner == his) f.now_ns += 5 * ms;
    });
    f.now_ns += 100 * ms;
  }
  for (auto const& j : jobs) CHECK(j->looks > (j->owner == hers ? 999u : 3u));
}

TEST_CASE("without time left a stream is blocked by its curve, and nobody asks who waits",
          "[node][loop_time]") {
  world w;
  w.start();
  node::job& j = w.join("a");
  wait_for_much(j);
  bool const has_time = GENERATE(true, false);
  if (!has_time) w.s->loop.steps.charge(j.owner, hour_ns);
  for (int step = 0; step < 10; ++step) {
    w.when.mono_ns += 10 * ms;
    w.s->measure(w.when);
  }
  w.s->end_cycle(w.when);
  CHECK(j.streams[0].last.blocked_ppm > 900'000);
  CHECK(j.streams[0].last.waiters == (has_time ? 1 : 0));
}

TEST_CASE("without time left background work is not looked at, and wakes nobody",
          "[node][loop_time]") {
  world w;
  write(w.config.policy, background_policy(w.at.dir + "/data"));
  w.announce("7");
  w.start();
  node::job* const j = w.find("7");
  REQUIRE(j != nullptr);
  bool const has_time = GENERATE(true, false);
  w.s->measure(w.when);  // the first look
  if (!has_time) w.s->loop.steps.charge(j->owner, hour_ns);
  move(*j, 1 << 20);
  w.when.mono_ns += 20 * ms;
  w.s->measure(w.when);
  CHECK((w.s->held_back.due_ns() != node::never_ns) == has_time);
}

TEST_CASE("without time left an answer says what was not read, and a result is whole",
          "[node][loop_time]") {
  world w;
  w.announce("7");
  w.start();
  node::job* const j = w.find("7");
  REQUIRE(j != nullptr);
  bool const has_time = GENERATE(true, false);
  if (!has_time) w.s->loop.figures.charge(j->owner, hour_ns);
  node::node_role role(*w.s);
  nlohmann::json answer = {{"lines", nlohmann::json::array()}};
  role.add_to_explain(0, answer);
  CHECK(answer["lines"].size() == (has_time ? 0 : 1));
  CHECK(w.s->outcome_of(*j).find("0 calls") != std::string::npos);
  w.withdraw("7");
  w.s->heed_scheduler(w.when);
  auto const result = nlohmann::json::parse(read(w.run + "/results/7.json"));
  CHECK(result["jobs"][0]["job"] == "7");
  CHECK(result.contains("channels"));
}

TEST_CASE("jobs of who has time for some of them take turns", "[node][loop_time]") {
  fixture f;
  std::vector<std::unique_ptr<fake_job>> jobs;
  for (int i = 0; i < 16; ++i) jobs.push_back(std::make_unique<fake_job>(fake_job{his}));
  std::vector<unsigned> left(jobs.size());
  for (int turn = 0; turn < 1600; ++turn) {
    f.time.each(
        jobs, [&](fake_job& j) { ++j.looks, f.now_ns += ms; },
        [&](fake_job& j) {
          for (std::size_t i = 0; i < jobs.size(); ++i) left[i] += jobs[i].get() == &j;
        });
    f.now_ns += 100 * ms;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CHECK(jobs[i]->looks + left[i] == 1600);
    CHECK(jobs[i]->looks > 100);
  }
}
