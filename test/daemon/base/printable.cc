// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <catch2/catch.hpp>

using sluice::one_line;
using sluice::printable;

TEST_CASE("text of others says nothing to a terminal") {
  CHECK(printable("a file, ~{}") == "a file, ~{}");
  CHECK(printable("a\x1b[2J\a\n\tb\x7f") == "a?[2J???b?");
  CHECK(printable("\xc2\x9b"
                  "2J") == "??2J");
}

TEST_CASE("printable: what turns the order of letters is taken out, and only that") {
  CHECK(one_line("a\u202eb\u2066c\u200fd\u061ce") == "a???b???c???d??e");
  CHECK(one_line("\u2026 \u20ac \u05d0 \u0627 \xe2\x80") == "\u2026 \u20ac \u05d0 \u0627 \xe2\x80");
}

TEST_CASE("printable: what commands a terminal is taken out of a sentence, and nothing else") {
  CHECK(sluice::without_commands("a\x1b[2Jb\x07\x7f\r") == "a?[2Jb???");
  CHECK(sluice::without_commands("line\n\tna\xc3\xafve \xe6\x96\x87") ==
        "line\n\tna\xc3\xafve \xe6\x96\x87");
  CHECK(sluice::without_commands("\xc2\x9b"
                                 "31m") == "\xc2?31m");
}
