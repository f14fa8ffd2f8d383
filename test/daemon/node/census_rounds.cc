// SPDX-License-Identifier: Apache-2.0
// Whose jobs are looked at next: nobody waits for a user whose jobs take long.
#include "node/census_rounds.h"

#include <catch2/catch.hpp>
#include <map>
#include <vector>

using namespace sluice;

namespace {

constexpr std::int64_t ms = 1'000'000, every = 200 * ms;

/// Looks as the daemon does: one owner a step, whose jobs take so many steps.
struct node_of {
  std::map<uid_t, int> steps_of_a_round;
  node::census_rounds rounds = {};
  std::map<uid_t, int> left = {}, finished = {};
  std::int64_t now = 0;

  std::optional<uid_t> step() {
    std::set<uid_t> owners;
    for (auto const& [owner, steps] : steps_of_a_round) owners.insert(owner);
    rounds.set_owners(owners);
    now += 10 * ms;
    auto const owner = rounds.next(now, every);
    if (!owner) return owner;
    int& steps = left.try_emplace(*owner, steps_of_a_round[*owner]).first->second;
    if (--steps > 0) return owner;
    left.erase(*owner);
    rounds.finish(*owner);
    ++finished[*owner];
    return owner;
  }
};

}  // namespace

TEST_CASE("jobs that take long delay another owner's by a step a turn", "[node][census]") {
  node_of n{{{1, 2048}, {2, 3}, {3, 1}}};
  for (int i = 0; i < 9; ++i) REQUIRE(n.step());
  CHECK(n.finished[2] == 1);
  CHECK(n.finished[3] == 1);
  CHECK(n.finished[1] == 0);
  // And once in a while: his round begins anew while the long one goes on.
  for (int i = 0; i < 91; ++i) REQUIRE(n.step());
  CHECK(n.finished[2] >= 4);
  CHECK(n.finished[3] >= 4);
  // Who has the others' turns as well comes to an end.
  for (int i = 0; i < 2700; ++i) n.step();
  CHECK(n.finished[1] == 1);
}

TEST_CASE("a round begins when it is due, or wanted", "[node][census]") {
  node_of n{{{1, 1}, {2, 1}}};
  CHECK(n.step() == 1u);
  CHECK(n.step() == 2u);
  CHECK_FALSE(n.step());
  n.rounds.want();
  CHECK(n.step() == 1u);
  CHECK(n.step() == 2u);
  CHECK_FALSE(n.step());
  n.now += every;
  CHECK(n.step() == 1u);
}

TEST_CASE("a look that is wanted again and again begins nothing anew", "[node][census]") {
  node_of n{{{1, 50}, {2, 5}}};
  for (int i = 0; i < 100; ++i) {
    n.rounds.want();
    REQUIRE(n.step());
  }
  CHECK(n.finished[1] == 1);
  CHECK(n.finished[2] == 10);
}

TEST_CASE("who wanted a look during a round gets one that begins after it", "[node][census]") {
  node_of n{{{1, 3}}};
  REQUIRE(n.step());
  n.rounds.want();
  REQUIRE(n.step());
  REQUIRE(n.step());
  REQUIRE(n.finished[1] == 1);
  for (int i = 0; i < 3; ++i) CHECK(n.step() == 1u);
  CHECK(n.finished[1] == 2);
  CHECK_FALSE(n.step());
}

TEST_CASE("an owner without jobs is forgotten, and due when he comes again", "[node][census]") {
  node_of n{{{1, 1}, {7, 9}}};
  CHECK(n.step() == 1u);
  CHECK(n.step() == 7u);
  n.steps_of_a_round.erase(7);
  CHECK_FALSE(n.step());
  n.steps_of_a_round[7] = 1;
  CHECK(n.step() == 7u);
}
