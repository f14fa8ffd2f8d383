// SPDX-License-Identifier: Apache-2.0
// How much one child may say: no honest one comes near it, and a flood does.
#include "wire/allowance.h"

#include <catch2/catch.hpp>

using namespace sluice;
using wire::allowance;

namespace {

constexpr std::int64_t ms = 1'000'000, second = 1000 * ms;
constexpr std::size_t letter = 104;  // gate_ask, the longest of those that come in numbers

struct talker : allowance {
  wire::role who = wire::role::node;
  terms t;
  std::int64_t now = second, kept = 0, dropped = 0;
  void say(std::int64_t count, std::size_t bytes) {
    for (std::int64_t i = 0; i < count; ++i) ++(spend(who, bytes, t, now) ? kept : dropped);
  }
  std::size_t longest() const {
    return who == wire::role::node ? wire::most_bytes_node : wire::most_bytes;
  }
};

}  // namespace

TEST_CASE("allowance: an honest child may say all it has", "[wire]") {
  std::int64_t const cycle_ns = GENERATE(10 * ms, 100 * ms, 60 * second);
  wire::role const who = GENERATE(wire::role::node, wire::role::relay);
  talker b;
  b.who = who;
  b.t.cycle_ns = cycle_ns;
  // 50 early ones, two a cycle; in each second, for a minute.
  std::int64_t const reports = 50 + 2 * second / cycle_ns;
  for (int s = 0; s < 60; ++s, b.now += second) {
    b.say(reports, b.longest());
    b.say(6000, letter);
  }
  CHECK(b.dropped == 0);
  // A parent that was stopped hears 20 s at once: half of the reports, for none was answered.
  b.now += 20 * second;
  b.say(20 * second / (2 * cycle_ns), b.longest());
  b.say(20 * 1000, letter);
  CHECK(b.dropped == 0);
}

TEST_CASE("allowance: what a flood says beyond it is dropped, and refills", "[wire]") {
  talker b;
  b.say(100'000, wire::most_bytes_node);  // 6 GiB
  CHECK(b.kept > 1000);
  CHECK(b.kept < 1500);
  CHECK_FALSE(b.spend(b.who, 0, b.t, b.now));
  b.kept = 0;
  b.now += second;
  b.say(100'000, wire::most_bytes_node);
  CHECK(b.kept > 300);
  CHECK(b.kept < 400);
  b.kept = 0;
  b.now += 3600 * second;
  b.say(1'000'000, 0);  // the smallest cost something as well
  CHECK(b.kept < 200'000);
}
