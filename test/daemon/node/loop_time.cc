// SPDX-License-Identifier: Apache-2.0
#include "node/loop_time.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

using namespace sluice;

namespace {

constexpr std::int64_t ms = 1'000'000;
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

}  // namespace

TEST_CASE("who takes long is looked at less, and nobody else", "[node][loop_time]") {
  fixture f;
  f.time.set_owners({his, hers});
  CHECK(f.look(his, 70 * ms));
  CHECK_FALSE(f.look(his, ms));
  CHECK(f.look(hers, ms));
  f.now_ns += 1'900 * ms;  // 30 ms of each second
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
  f.now_ns += 10'000 * ms;
  CHECK(f.look(his, ms));
  f.time.spend_anyhow(his, [&] { f.now_ns += 100 * ms; });
  CHECK_FALSE(f.look(his, ms));
}

TEST_CASE("what all owners take is a third of the time at most", "[node][loop_time]") {
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
  CHECK(taken_ns < (f.now_ns - began_ns) * 35 / 100);
  CHECK(taken_ns > (f.now_ns - began_ns) * 25 / 100);
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
