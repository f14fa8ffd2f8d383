// SPDX-License-Identifier: Apache-2.0
#include "node/foreign_turns.h"

#include <catch2/catch.hpp>

using namespace sluice;
using turns = node::foreign_turns;
using folders = std::set<std::string>;

TEST_CASE("few claims are all asked for, each time", "[node][foreign_turns]") {
  turns t;
  std::map<uid_t, turns::claims> const all = {{1, {{"a", 3}, {"b", 1}}}, {2, {{"c", 7}}}};
  for (int walk = 0; walk < 3; ++walk) CHECK(t.next(all) == folders{"a", "b", "c"});
  CHECK(t.next({}).empty());
}

TEST_CASE("jobs of a user with many claims take turns, and no other user waits",
          "[node][foreign_turns]") {
  turns t;
  std::map<uid_t, turns::claims> all = {{2, {{"z", 1}}}};
  for (char name = 'a'; name < 'g'; ++name) all[1][std::string(1, name)] = turns::most_asked / 2;
  CHECK(t.next(all) == folders{"a", "b", "z"});
  CHECK(t.next(all) == folders{"c", "d", "z"});
  all[1].erase("d");
  CHECK(t.next(all) == folders{"e", "f", "z"});
  CHECK(t.next(all) == folders{"a", "b", "z"});
}

TEST_CASE("a job with more claims than that is asked for as a whole", "[node][foreign_turns]") {
  turns t;
  std::map<uid_t, turns::claims> const all = {{1, {{"a", 9 * turns::most_asked}, {"b", 1}}}};
  CHECK(t.next(all) == folders{"a"});
  CHECK(t.next(all) == folders{"a", "b"});
}
