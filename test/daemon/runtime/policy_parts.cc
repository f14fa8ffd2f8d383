// SPDX-License-Identifier: Apache-2.0
// A policy that comes in parts, over a connection that may break between them.
#include "runtime/policy_parts.h"

#include <catch2/catch.hpp>

#include "policy/supply.h"

using namespace sluice;

TEST_CASE("a policy in parts is whole only when all is there and right", "[control]") {
  std::string const text = std::string(100, 'a') + std::string(50, 'b');
  std::uint64_t const hash = policy::policy_hash(text);
  runtime::policy_parts p;
  auto const add = [&](std::uint32_t from, std::uint32_t size) {
    return p.add(hash, 150, from, text.substr(from, size));
  };
  CHECK(!add(100, 50));  // its beginning is missing
  CHECK(!add(0, 100));
  CHECK(!add(0, 100));  // twice
  CHECK(add(100, 50) == text);
  CHECK(!add(100, 50));
  CHECK(!p.add(hash, 150, 0, std::string(150, 'x')));  // not what was announced
  CHECK(!p.add(hash, 0xffffffff, 0, "x"));
  CHECK(!p.add(hash, 10, 0, text));  // longer than it said
}

TEST_CASE("a stray part of a policy costs nothing", "[control]") {
  std::string const text(150, 'a');
  std::uint64_t const hash = policy::policy_hash(text);
  runtime::policy_parts p;
  CHECK(!p.add(hash, 150, 0, text.substr(0, 100)));
  CHECK(!p.add(hash, 150, 30, text.substr(30, 20)));
  CHECK(!p.add(hash + 1, 150, 100, text.substr(100)));
  CHECK(p.add(hash, 150, 100, text.substr(100)) == text);
}
