// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.h"
#include "commands/replay/job_processes.h"
#include "commands/replay/pools.h"
#include "commands/replay/progress.h"
#include "commands/replay/timeline.h"

using namespace sluice;
using namespace sluice::replay;

namespace {

tally some(std::uint64_t submitted, std::uint64_t done, std::int64_t lag_ns,
           std::uint64_t took_ns) {
  tally t = {};
  t.submitted = submitted;
  t.done = done;
  t.lag_ns_max = lag_ns;
  t.took[core::histogram_step(took_ns)] = static_cast<std::uint32_t>(done);
  return t;
}

}  // namespace

TEST_CASE("records come in any order and from many threads", "[replay]") {
  timeline t(2);
  t.add(0, 3, some(5, 4, 7, 1000));
  t.add(0, 1, some(1, 1, 9, 1000));
  t.add(0, 3, some(5, 6, 3, 100000));
  t.add(1, 0, some(2, 2, 0, 10));
  t.add(0, -1, some(100, 100, 100, 10));  // the warm-up
  CHECK(t.intervals() == 4);
  auto const& row = t.of(0);
  REQUIRE(row.size() == 4);
  CHECK(row[2].submitted == 0);
  CHECK(row[3].submitted == 10);
  CHECK(row[3].done == 10);
  CHECK(row[3].lag_ns_max == 7);
  CHECK(row[3].histogram().percentile(0.3) == Approx(1000).epsilon(0.25));
  CHECK(row[3].histogram().percentile(0.9) == Approx(100000).epsilon(0.25));
  CHECK(t.total(0).submitted == 11);
  CHECK(t.of(1).size() == 1);
}

TEST_CASE("long replays have longer intervals, and nothing is lost", "[replay]") {
  timeline t(1, 8);
  for (std::int64_t s = 0; s < 100; ++s) t.add(0, s, some(1, 1, s, 50));
  CHECK(t.interval_s() == 16);
  CHECK(t.intervals() == 7);
  std::uint64_t sum = 0;
  for (auto const& i : t.of(0)) sum += i.submitted;
  CHECK(sum == 100);
  CHECK(t.of(0)[0].submitted == 16);
  CHECK(t.of(0)[0].lag_ns_max == 15);
  CHECK(t.of(0)[6].submitted == 4);
  CHECK(t.of(0)[0].histogram().total() == 16);
}

TEST_CASE("what is late and not yet sent shows in the interval in which it was seen", "[replay]") {
  timeline t(1);
  t.seen_late(0, 5, 2'000'000'000);
  t.seen_late(0, 5, 1'000'000'000);
  t.seen_late(0, -1, 9'000'000'000);
  CHECK(t.of(0)[5].lag_ns_max == 2'000'000'000);
  CHECK(t.total(0).lag_ns_max == 2'000'000'000);
}

TEST_CASE("a pool gives the oldest first and hands back what is too much", "[replay]") {
  pool<int> fds(2);
  CHECK_FALSE(fds.take());
  CHECK_FALSE(fds.put(1));
  CHECK_FALSE(fds.put(2));
  CHECK(fds.put(3) == 1);
  CHECK(fds.take() == 2);
  CHECK(fds.size() == 1);
}

TEST_CASE("the words of --wrap", "[replay]") {
  using list = std::vector<std::string>;
  CHECK(split_words("sluice run  --job a --") == list{"sluice", "run", "--job", "a", "--"});
  CHECK(split_words("sh -c 'a \"b' \"c d\"e '' \\ x") ==
        list{"sh", "-c", "a \"b", "c de", "", " x"});
  CHECK_THROWS_AS(split_words("sh -c 'a"), error);
  CHECK(wrap_words("run {job}-{job} --class={class}", "a b", "gold") ==
        list{"run", "a b-a b", "--class=gold"});
}

TEST_CASE("the progress line fits the terminal", "[replay]") {
  progress_facts f{30, 60, 12345, 370000, 0.0021};
  std::string const wide = progress_line(f, 100);
  CHECK(wide.find(" 50% 0:30/1:00  370000 sent, 12 k/s  lag 2.1 ms") != wide.npos);
  CHECK(wide.find("[###") == 0);
  for (unsigned columns : {0u, 1u, 20u, 60u, 80u, 200u})
    CHECK(progress_line(f, columns).size() <= columns);
  f.now_s = -1;
  CHECK(progress_line(f, 100).find("  0%") != std::string::npos);
}
