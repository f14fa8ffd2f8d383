// SPDX-License-Identifier: Apache-2.0
// A segment that a broken program scribbled over: whatever passes the check at the border can be
// summed and looked at without leaving it. The input is written over a good segment: offset (4
// bytes), then bytes.
#include <cstring>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "commands/cli/limits.h"
#include "commands/cli/report.h"
#include "segment/segment_file.h"

namespace {

using sluice::abi::segment;

/// All zero but for what refuse_reason asks of a segment.
std::unique_ptr<segment> good() {
  auto s = std::make_unique<segment>();
  std::memset(static_cast<void*>(s.get()), 0, sizeof *s);
  s->head.magic_word.store(sluice::abi::magic);
  s->head.layout = sluice::abi::layout_version;
  s->head.total_bytes = sizeof *s;
  s->head.ruleset_bytes = sizeof s->rules;
  s->head.bucket_bytes = sizeof s->bucket[0];
  s->head.shard_bytes = sizeof s->owned[0];
  s->head.slot_bytes = sizeof s->near_process[0];
  s->head.state.store(1);
  s->rules.target_count = 1;
  s->rules.rule_count = s->rules.channel_count = 2;
  s->rules.string_bytes = 64;
  return s;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) {
  std::uint32_t offset = 0;
  if (size < sizeof offset) return 0;
  std::memcpy(&offset, data, sizeof offset);
  auto const s = good();
  std::size_t const end = offsetof(segment, far_process);
  offset %= static_cast<std::uint32_t>(end);
  std::size_t const length = std::min(size - sizeof offset, end - offset);
  std::memcpy(reinterpret_cast<char*>(s.get()) + offset, data + sizeof offset, length);
  if (sluice::abi::refuse_reason(*s, sizeof *s) != nullptr) return 0;
  sluice::cli::report_table(sluice::cli::report_json(*s, {}));
  for (unsigned r = 0; r < s->rules.rule_count; ++r)
    sluice::cli::describe(s->rules, r, sluice::cli::rate_of(*s, s->rules.rule[r].channel));
  return 0;
}
