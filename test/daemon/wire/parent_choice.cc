// SPDX-License-Identifier: Apache-2.0
// Children that know several parents: they stay with one that answers, leave one that is silent,
// and meet at one after a fault that divided them.
#include "wire/parent_choice.h"

#include <catch2/catch.hpp>
#include <vector>

using sluice::wire::parent_choice;

namespace {

constexpr std::int64_t ms = 1'000'000, second = 1'000 * ms;

/// Parents that are up or not, children that speak to one each; a visit takes 20 ms.
struct town {
  struct child {
    parent_choice choice;
    std::size_t at;
    bool greeted;
    std::int64_t arrives;
    unsigned moves;
  };

  town(std::size_t parents, std::size_t children) : up(parents, true) {
    for (std::size_t i = 0; i < children; ++i)
      all.push_back({parent_choice(parents, i * 311), 0, false, 0, 0});
  }

  std::size_t children_of(std::size_t parent) const {
    std::size_t n = 0;
    for (child const& c : all) n += c.greeted && c.at == parent && up[parent];
    return n;
  }
  bool lacks_pool(std::size_t parent) const { return 2 * children_of(parent) <= all.size(); }

  void go(child& c) {
    c.at = (c.at + 1) % up.size();
    c.greeted = false;
    c.arrives = now + 20 * ms;
    ++c.moves;
  }
  void step() {
    now += 10 * ms;
    for (child& c : all) {
      if (!up[c.at]) c.greeted = false;
      bool const hears = up[c.at] && now >= c.arrives;
      // A parent tells everybody when that changes, which is as good as telling it always.
      if (hears && !c.choice.welcomed(lacks_pool(c.at) && now > grace, now)) {
        go(c);
        continue;
      }
      c.greeted = hears;
      if (c.choice.leaves(!c.greeted, now)) go(c);
    }
  }
  void run(std::int64_t for_ns) {
    for (std::int64_t const end = now + for_ns; now < end;) step();
  }
  void put(std::size_t from, std::size_t to, std::size_t parent) {
    for (std::size_t i = from; i < to; ++i)
      while (all[i].at != parent) {
        all[i].choice.leaves(true, now);
        now += parent_choice::walk_every_ns;
        if (all[i].choice.leaves(true, now)) all[i].at = (all[i].at + 1) % up.size();
      }
  }

  std::vector<bool> up;
  std::vector<child> all;
  std::int64_t now = second, grace = 4 * second;
};

}  // namespace

TEST_CASE("choice of a parent: who has one address never leaves it", "[wire]") {
  parent_choice one(1, 7);
  for (std::int64_t now = second; now < 100 * second; now += 10 * ms)
    REQUIRE_FALSE(one.leaves(true, now));
}

TEST_CASE("choice of a parent: one that comes back disturbs nobody", "[wire]") {
  town t(2, 5);
  t.run(2 * second);
  REQUIRE(t.children_of(0) == 5);
  t.up[0] = false;
  t.run(second);
  CHECK(t.children_of(1) == 5);
  t.up[0] = true;
  t.run(200 * second);
  CHECK(t.children_of(1) == 5);
}

TEST_CASE("choice of a parent: divided children meet again", "[wire]") {
  for (std::size_t divided : {1, 5, 9})
    for (std::size_t parents : {2, 3}) {
      INFO(divided << " of 10, " << parents << " parents");
      town t(parents, 10);
      t.put(divided, 10, parents - 1);
      t.run(60 * second);
      std::size_t most = 0;
      for (std::size_t p = 0; p < parents; ++p) most = std::max(most, t.children_of(p));
      CHECK(most == 10);
    }
}

TEST_CASE("choice of a parent: where most nodes are down, visits become rare", "[wire]") {
  parent_choice few(2, 0);
  unsigned visits = 0;
  for (std::int64_t now = second; now < 1000 * second; now += 100 * ms) {
    bool const stays = few.welcomed(true, now);
    if (!stays) {
      CHECK(few.welcomed(true, now));  // at home again
      continue;
    }
    visits += few.leaves(false, now);
  }
  CHECK(visits > 10);
  CHECK(visits < 25);
}
