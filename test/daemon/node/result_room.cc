// SPDX-License-Identifier: Apache-2.0
// Users share the room for results, and who ends many jobs takes none of it from the others.
#include "node/result_room.h"

#include <catch2/catch.hpp>

using namespace sluice;
using node::kept_result;
using node::most_results;
using node::results_to_go;

namespace {

constexpr uid_t his = 1000, hers = 1001, third = 1002;
using paths = std::vector<std::string>;

/// `count` more of one owner, called `letter` and a number, each younger than all before.
void add(std::vector<kept_result>& to, char letter, uid_t owner, std::size_t count,
         std::size_t bytes = 1) {
  for (std::size_t i = 0; i < count; ++i) {
    auto const at = static_cast<std::int64_t>(to.size());
    to.push_back({letter + std::to_string(i), owner, at, bytes});
  }
}

}  // namespace

TEST_CASE("no result goes while there is room", "[node][result_room]") {
  std::vector<kept_result> kept;
  add(kept, 'a', his, most_results - 1);
  CHECK(results_to_go(kept, his).empty());
  CHECK(results_to_go(kept, hers).empty());
}

TEST_CASE("of all results the oldest of the user with the most goes", "[node][result_room]") {
  std::vector<kept_result> kept;
  add(kept, 'b', hers, 1);
  add(kept, 'a', his, most_results - 1);
  CHECK(results_to_go(kept, his) == paths{"a0"});
  CHECK(results_to_go(kept, hers) == paths{"a0"});
  CHECK(results_to_go(kept, third) == paths{"a0"});
}

TEST_CASE("nobody loses a result to one who has as many", "[node][result_room]") {
  std::vector<kept_result> kept;
  add(kept, 'c', third, 2);
  add(kept, 'a', his, most_results / 2 - 1);
  add(kept, 'b', hers, most_results / 2 - 1);
  CHECK(results_to_go(kept, his) == paths{"a0"});
  CHECK(results_to_go(kept, hers) == paths{"b0"});
  CHECK(results_to_go(kept, third) == paths{"a0"});
}

TEST_CASE("where each user has one result the oldest goes", "[node][result_room]") {
  std::vector<kept_result> kept;
  for (uid_t uid = 1; uid <= most_results; ++uid) add(kept, 'a', 2000 + uid, 1);
  CHECK(results_to_go(kept, his) == paths{"a0"});
}

TEST_CASE("large results of a user take the place of his own alone", "[node][result_room]") {
  std::vector<kept_result> kept;
  add(kept, 'b', hers, 1);
  add(kept, 'a', his, 65, node::most_result_bytes);
  CHECK(results_to_go(kept, his) == paths{"a0", "a1"});
  CHECK(results_to_go(kept, hers).empty());
}
