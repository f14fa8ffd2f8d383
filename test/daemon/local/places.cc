// SPDX-License-Identifier: Apache-2.0
// Who has a place at the local socket: a few users cannot keep out another one.
#include "local/places.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

using namespace sluice::local;

namespace {

struct socket_of {
  std::vector<held_place> held;
  std::int64_t now_ns = 0;

  /// True: he has a place.
  bool come(uid_t uid) {
    auto const verdict = place_for(uid, held);
    if (verdict.leaves) {
      CHECK(held[*verdict.leaves].owner != 0);
      held.erase(held.begin() + std::ptrdiff_t(*verdict.leaves));
    }
    if (verdict.may_enter) held.push_back({uid, ++now_ns, false});
    return verdict.may_enter;
  }
  std::ptrdiff_t of(uid_t uid) const {
    return std::count_if(held.begin(), held.end(), [&](auto const& h) { return h.owner == uid; });
  }
};

}  // namespace

TEST_CASE("places: a user has four, root has more and always some of its own", "[local][places]") {
  socket_of s;
  for (int i = 0; i < 4; ++i) CHECK(s.come(1));
  CHECK_FALSE(s.come(1));
  for (uid_t uid = 100; uid < 160; ++uid) CHECK(s.come(uid));
  CHECK(s.held.size() == most_places);
  for (std::size_t i = 0; i < most_places + most_of_root; ++i) CHECK(s.come(0));
  CHECK_FALSE(s.come(0));
  CHECK(s.of(1) == 4);  // root takes nobody's
}

TEST_CASE("places: users with all they may have do not keep out others", "[local][places]") {
  socket_of s;
  constexpr uid_t rude_users = (most_places - kept_places) / most_of_an_owner;
  for (uid_t uid = 1; uid <= rude_users; ++uid)
    for (int i = 0; i < 4; ++i) CHECK(s.come(uid));
  CHECK_FALSE(s.come(1));
  for (uid_t uid = 101; uid <= 101 + kept_places; ++uid) CHECK(s.come(uid));  // one gives way
  CHECK(s.held.size() == most_places);
  for (uid_t rude = 1; rude <= rude_users; ++rude) s.come(rude);  // they try to have it back
  for (uid_t uid = 101; uid <= 101 + kept_places; ++uid) CHECK(s.of(uid) == 1);
  for (uid_t uid = 201; uid <= 200 + rude_users - 1; ++uid) {
    CHECK(s.come(uid));
    CHECK(s.held.size() == most_places);
    for (uid_t rude = 1; rude <= rude_users; ++rude) s.come(rude);
    CHECK(s.of(uid) == 1);
  }
  for (uid_t rude = 1; rude <= rude_users; ++rude) CHECK(s.of(rude) == 3);
  CHECK(s.come(101));  // a second one
  CHECK_FALSE(s.come(101));
}

TEST_CASE("places: the last eighth is for users who hold none", "[local][places]") {
  socket_of s;
  for (uid_t uid = 1; s.held.size() < most_places - kept_places; ++uid) CHECK(s.come(uid));
  CHECK_FALSE(s.come(1));  // who has one, where nobody has more
  for (uid_t uid = 1001; uid <= 1000 + kept_places; ++uid) CHECK(s.come(uid));
  CHECK(s.held.size() == most_places);
}

TEST_CASE("places: as many users as there are places are no few", "[local][places]") {
  socket_of s;
  for (uid_t uid = 1; uid <= most_places; ++uid) CHECK(s.come(uid));
  CHECK_FALSE(s.come(1000));
}

TEST_CASE("places: who was silent longest leaves, who waits for an answer last",
          "[local][places]") {
  std::vector<held_place> held = {{7, 50, false}, {7, 10, true}, {7, 30, false}, {8, 1, false}};
  for (uid_t uid = 100; held.size() < most_places; ++uid) held.push_back({uid, 0, false});
  CHECK(place_for(9, held).leaves == 2u);
  held[0].is_waiting = held[2].is_waiting = true;
  CHECK(place_for(9, held).leaves == 1u);
}
