// SPDX-License-Identifier: Apache-2.0
#include "base/fair_room.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace sluice;

namespace {

std::vector<room_wish> wishes_of(std::uint64_t owner, std::size_t n, bool is_at_work) {
  return std::vector<room_wish>(n, {owner, 1, is_at_work});
}

std::vector<room_wish> operator+(std::vector<room_wish> a, std::vector<room_wish> const& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// How many of wishes `from` … `to` come in.
std::ptrdiff_t in(std::vector<bool> const& all, std::size_t from, std::size_t to) {
  auto const at = [&](std::size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i); };
  return std::count(at(from), at(to), true);
}

}  // namespace

TEST_CASE("room: idle wishes of one keep out no busy one of another", "[base][room]") {
  auto const all = wishes_of(1, 1500, false) + wishes_of(2, 3, true);
  auto const out = fair_room(all, 1000, 0);
  CHECK(in(out, 1500, 1503) == 3);
  CHECK(in(out, 0, 1500) == 997);
}

TEST_CASE("room: who wishes much keeps out nobody who wishes his part", "[base][room]") {
  bool const is_at_work = GENERATE(false, true);
  auto const all = wishes_of(1, 5000, is_at_work) + wishes_of(2, 300, is_at_work) +
                   wishes_of(3, 5000, is_at_work);
  auto const out = fair_room(all, 1000, 7);
  CHECK(in(out, 5000, 5300) == 300);
  CHECK(in(out, 0, 5000) == 350);
  CHECK(in(out, 5300, 10300) == 350);
}

TEST_CASE("room: all come in where there is room, whatever the turn", "[base][room]") {
  auto const all = wishes_of(1, 10, true) + wishes_of(2, 20, false);
  for (std::uint64_t turn : {0u, 1u, 17u}) CHECK(in(fair_room(all, 30, turn), 0, 30) == 30);
}

TEST_CASE("room: what is left out has its turn soon", "[base][room]") {
  auto const all = wishes_of(1, 2500, true) + wishes_of(2, 10, true);
  std::vector<unsigned> times(all.size());
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    auto const out = fair_room(all, 1000, turn);
    CHECK(in(out, 0, all.size()) == 1000);
    for (std::size_t i = 0; i < all.size(); ++i) times[i] += out[i];
  }
  CHECK(std::ranges::all_of(times, [](unsigned n) { return n > 0; }));
}

TEST_CASE("room: more owners than places take turns", "[base][room]") {
  std::vector<room_wish> all;
  for (std::uint64_t owner = 0; owner < 15; ++owner) all.push_back({owner, 1, true});
  std::vector<unsigned> times(all.size());
  for (std::uint64_t turn = 0; turn < 15; ++turn) {
    auto const out = fair_room(all, 10, turn);
    CHECK(in(out, 0, 15) == 10);
    for (std::size_t i = 0; i < all.size(); ++i) times[i] += out[i];
  }
  CHECK(std::ranges::all_of(times, [](unsigned n) { return n == 10; }));
}

TEST_CASE("room: large wishes of one have no more room than small ones of another",
          "[base][room]") {
  std::vector<room_wish> all(100, {1, 30, true});
  all = all + std::vector<room_wish>(100, {2, 3, true});
  auto const out = fair_room(all, 400, 0);
  CHECK(in(out, 100, 200) == 67);  // 201 bytes
  CHECK(in(out, 0, 100) == 6);
}
