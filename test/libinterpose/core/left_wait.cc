// SPDX-License-Identifier: Apache-2.0
#include "libinterpose/core/left_wait.h"

#include <catch2/catch.hpp>

using namespace sluice::core;

TEST_CASE("a wait is over when the next one is not below it", "[left_wait]") {
  constexpr std::uintptr_t then = 0x7fff'0000'0000, end = then + (4 << 20);
  given_stacks const given = GENERATE(given_stacks{end, 0}, given_stacks{0, end});
  auto const is_over_at = [&](std::uintptr_t now) { return is_over(then, now, {}, given); };
  CHECK(is_over_at(then));
  CHECK(is_over_at(then + 400));
  CHECK(is_over_at(then - 400));         // another call of the same function
  CHECK_FALSE(is_over_at(then - 1200));  // a handler may be there
  CHECK_FALSE(is_over_at(then - (1 << 20)));
  CHECK_FALSE(is_over_at(then + (1 << 20)));  // another stack, for all we know
  CHECK_FALSE(is_over_at(0));
  CHECK_FALSE(is_over(0, then, {}, given));
}

TEST_CASE("of a stack that was not given to the thread nothing is known", "[left_wait]") {
  constexpr std::uintptr_t then = 0x1000'0000, end = then + (4 << 20);
  CHECK_FALSE(is_over(then, then + 400, {}, {}));
  CHECK_FALSE(is_over(then, then + 400, {}, {then, 0}));
  CHECK_FALSE(is_over(then, then + 400, {}, {then + 300, then + 100}));
  CHECK_FALSE(is_over(then, then + 400, {}, {then + (1 << 30), 0}));
  CHECK(is_over(then, then + 400, {}, {end, end}));
}

TEST_CASE("a signal stack tells whether its handler has ended", "[left_wait]") {
  constexpr std::uintptr_t low = 0x10000, size = 8192, inside = low + 6000, plain = low + 9000;
  signal_stack const idle{low, size, false}, in_use{low, size, true};
  given_stacks const given{low + (1 << 20), 0};
  CHECK(is_over(inside, plain, idle, given));          // jumped out of the handler
  CHECK_FALSE(is_over(plain, inside, in_use, given));  // the handler interrupts the wait
  CHECK(is_over(inside, inside, in_use, {}));          // the next signal
  CHECK_FALSE(is_over(inside, low + 500, in_use, given));
  CHECK(is_over(plain, plain, idle, given));
}
