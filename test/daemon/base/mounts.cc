// SPDX-License-Identifier: Apache-2.0
// The mount table as the kernel prints it: odd names, broken lines.
#include "base/mounts.h"

#include <catch2/catch.hpp>

#include "lib/mount_lines.h"

using namespace sluice;
using sluice::test::table;

TEST_CASE("mount table: rows, escapes and broken lines") {
  auto const mounts = parse_mounts(table);
  REQUIRE(mounts.size() == 8);
  CHECK(mounts[2].device == device_number(254, 0));
  CHECK(mounts[4].root == "/project/a");
  CHECK(mounts[6].point == "/with blank");
  CHECK(mounts[7].type == "tmpfs");
  CHECK(parse_mounts("").empty());
}

TEST_CASE("mount table: below means below, not beginning with the same letters") {
  CHECK(lies_below("/a/b", "/a"));
  CHECK(lies_below("/a", "/a"));
  CHECK(lies_below("/a", "/"));
  CHECK_FALSE(lies_below("/ab", "/a"));
  CHECK_FALSE(lies_below("/", "/a"));
}
