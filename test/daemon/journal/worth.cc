// SPDX-License-Identifier: Apache-2.0
// Whether the log pays is measured: programs are simulated that sync so often with it, and so often
// without.
#include <catch2/catch.hpp>

#include "journal/worth.h"

using namespace sluice::journal;

namespace {

constexpr std::uint64_t ms = 1'000'000, window_ns = 250 * ms;

/// A program below a log: a look each millisecond.
struct program {
  log_worth worth{experiment{.window_ns = window_ns}};
  double with = 1000, without = 1000;  // per second
  double syncs = 0;
  std::uint64_t now_ms = 1, aside_ms = 0, changes = 0;
  std::uint64_t delay_ms = 20;  // until what is wanted is so
  std::uint64_t since_ms = 0;
  bool wanted = false;

  void run(std::uint64_t for_ms) {
    for (std::uint64_t const end = now_ms + for_ms; now_ms < end; ++now_ms) {
      bool const is_so = now_ms - since_ms >= delay_ms;
      syncs += (wanted && is_so ? without : with) / 1000;
      worth.look(now_ms * ms, static_cast<std::uint64_t>(syncs), is_so);
      if (worth.wants_aside() != wanted) {
        wanted = !wanted;
        since_ms = now_ms;
        ++changes;
      }
      aside_ms += wanted ? 1 : 0;
    }
  }
};

}  // namespace

TEST_CASE("a log that pays is tried without seldom, and stays", "[order]") {
  program p;
  p.with = 2000;
  p.run(300'000);
  CHECK_FALSE(p.wanted);
  CHECK(p.changes >= 8);                    // measured again and again
  CHECK(p.aside_ms < p.changes / 2 * 550);  // once to settle, and once
}

TEST_CASE("where syncs without the log are half as many that is soon known", "[order]") {
  program p;
  p.with = 3000;
  p.run(300'000);
  CHECK_FALSE(p.wanted);
  CHECK(p.changes >= 8);
  CHECK(p.aside_ms < p.changes / 2 * 400);  // a window to settle, and half a one
}

TEST_CASE("a log that does not pay stands aside", "[order]") {
  program p;
  p.with = 1000;
  p.without = 1100;
  p.run(6'000);
  CHECK(p.wanted);
  p.run(300'000);
  CHECK(p.wanted);
  CHECK(p.aside_ms > 270'000);
}

TEST_CASE("where it makes no difference, or a small one, the log stays", "[order]") {
  program p;
  p.without = 1030;
  p.run(100'000);
  CHECK_FALSE(p.wanted);
}

TEST_CASE("programs that change get another answer", "[order]") {
  program p;
  p.without = 2000;
  p.run(20'000);
  CHECK(p.wanted);
  p.with = 4000;
  p.run(45'000);
  CHECK_FALSE(p.wanted);
  p.with = 1000;
  p.run(45'000);
  CHECK(p.wanted);
}

TEST_CASE("one part that was quick is no proof", "[order]") {
  program p;
  p.run(1'000);
  bool was_wanted = false;
  for (int i = 0; i < 5'000; ++i) {
    p.without = was_wanted ? 900 : 2000;  // only the first of the two is quick
    bool const before = p.wanted;
    p.run(1);
    was_wanted |= before && !p.wanted;
  }
  CHECK(was_wanted);
  CHECK_FALSE(p.wanted);
}

TEST_CASE("of three rough figures one may be wrong", "[order]") {
  program p;
  p.run(1'000);
  unsigned pairs = 0;
  for (int i = 0; i < 6'000; ++i) {
    p.without = pairs == 1 ? 1000 : 1200;  // the second shows no difference
    bool const before = p.wanted;
    p.run(1);
    pairs += before && !p.wanted;
  }
  CHECK(p.wanted);
}

TEST_CASE("who syncs seldom is left with the log, and not experimented on", "[order]") {
  program p;
  p.with = 100;
  p.without = 300;
  p.run(60'000);
  CHECK(p.changes == 0);
  p.with = 1000;
  p.without = 2000;
  p.run(10'000);
  CHECK(p.wanted);
  p.with = p.without = 50;
  p.run(1'000);
  CHECK_FALSE(p.wanted);
}

TEST_CASE("a log that cannot stand aside is given up on for a while", "[order]") {
  program p;
  p.delay_ms = 100'000;
  p.without = 5000;
  p.run(30'000);
  CHECK_FALSE(p.wanted);
  CHECK(p.changes <= 6);
}

TEST_CASE("without a window there is no experiment, and counts may go back", "[order]") {
  program p;
  p.worth = log_worth(experiment{.window_ns = 0});
  p.without = 9000;
  p.run(20'000);
  CHECK(p.changes == 0);
  program q;
  q.run(600);
  q.syncs = 10;
  q.run(600);
  CHECK(q.changes == 0);
}
