// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <catch2/catch.hpp>

using sluice::printable;

TEST_CASE("text of others says nothing to a terminal") {
  CHECK(printable("a file, ~{}") == "a file, ~{}");
  CHECK(printable("a\x1b[2J\a\n\tb\x7f") == "a?[2J???b?");
  CHECK(printable("\xc2\x9b"
                  "2J") == "??2J");
}
