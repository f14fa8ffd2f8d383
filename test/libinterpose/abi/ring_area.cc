// SPDX-License-Identifier: Apache-2.0
// What a dead keeper had begun counts as far as it came into the file.
#include "abi/ring_area.h"

#include <catch2/catch.hpp>

using namespace sluice;

TEST_CASE("rings: a write that was under way counts as far as it came", "[abi]") {
  abi::write_begun begun = {};
  begun.ring_begin.store(1000);
  begun.file_end.store(5000);
  begun.bytes.store(300);
  CHECK(abi::begin_after(begun, 5000) == 1000);
  CHECK(abi::begin_after(begun, 5120) == 1120);
  CHECK(abi::begin_after(begun, 5300) == 1300);
  CHECK(abi::begin_after(begun, 9000) == 1300);  // somebody else has written there, too
}
