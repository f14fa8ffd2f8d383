// SPDX-License-Identifier: Apache-2.0
// The golden layout of the segment: two programs of different age share it, so every change of an
// offset must be seen, and must raise abi::layout_version.
#include <catch2/catch.hpp>
#include <cstddef>

#include "abi/segment.h"
#include "calls.h"

using namespace sluice;

TEST_CASE("the layout of the segment is the golden one", "[abi]") {
  REQUIRE(abi::layout_version == 15);
  CHECK(offsetof(abi::segment, head) == 0);
  CHECK(offsetof(abi::header, magic_word) == 0);
  CHECK(offsetof(abi::header, layout) == 8);
  CHECK(offsetof(abi::header, state) == 12);
  CHECK(offsetof(abi::header, total_bytes) == 16);
  CHECK(offsetof(abi::header, holder) == 56);
  CHECK(offsetof(abi::segment, rules) % 64 == 0);
  CHECK(offsetof(abi::segment, bucket) % 64 == 0);
  CHECK(offsetof(abi::segment, owned) % 4096 == 0);
  CHECK(sizeof(core::ruleset) == 49320);
  CHECK(offsetof(core::ruleset, cost) == 43560);
  CHECK(sizeof(core::cost_table) == 360);
  CHECK(sizeof(core::bucket) == 576);
  CHECK(sizeof(abi::process_slot) == 64);
  CHECK(sizeof(abi::shard) == 24576);
  CHECK(sizeof(abi::lease_row) == 64);
  CHECK(sizeof(abi::segment::reads) == 4160);
  CHECK(sizeof(abi::segment) == 7913472);
}

TEST_CASE("every counted call has a row in a shard", "[abi]") {
  CHECK(call_count <= abi::max_calls);
  for (unsigned i = 0; i < call_count; ++i)
    CHECK(static_cast<unsigned>(call_table[i].op) < core::op_count);
}

TEST_CASE("a segment that is not ours is refused", "[abi]") {
  static abi::segment s;
  auto const ready = [&] {
    s.head.magic_word = abi::magic;
    s.head.layout = abi::layout_version;
    s.head.total_bytes = sizeof(abi::segment);
    s.head.ruleset_bytes = sizeof(core::ruleset);
    s.head.bucket_bytes = sizeof(core::bucket);
    s.head.shard_bytes = sizeof(abi::shard);
    s.head.slot_bytes = sizeof(abi::process_slot);
    s.head.state = static_cast<std::uint32_t>(abi::segment_state::ready);
    s.rules.target_count = 1;
  };
  ready();
  REQUIRE(abi::refuse_reason(s, sizeof s) == nullptr);
  CHECK(abi::refuse_reason(s, sizeof s - 1) != nullptr);
  s.head.layout = abi::layout_version + 1;
  CHECK(abi::refuse_reason(s, sizeof s) != nullptr);
  ready();
  s.head.magic_word = 0;
  CHECK(abi::refuse_reason(s, sizeof s) != nullptr);
  ready();
  s.head.state = static_cast<std::uint32_t>(abi::segment_state::building);
  CHECK(abi::refuse_reason(s, sizeof s) != nullptr);
  ready();
  s.head.shard_bytes += 8;
  CHECK(abi::refuse_reason(s, sizeof s) != nullptr);
  ready();
  s.rules.string_bytes = core::string_pool_bytes + 1;
  CHECK(abi::refuse_reason(s, sizeof s) != nullptr);
  s.rules.string_bytes = 0;
}
