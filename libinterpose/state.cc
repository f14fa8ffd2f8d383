// SPDX-License-Identifier: Apache-2.0
#include "state.h"

#include <time.h>

namespace sluice {

constinit stage_state stage;
thread_local constinit thread_state self;

void pass_through(abi::passthrough reason) {
  if (abi::segment* const s = stage.active.load(std::memory_order_relaxed))
    s->head.passthrough_calls[static_cast<unsigned>(reason)].fetch_add(1,
                                                                       std::memory_order_relaxed);
}

bool still_a_segment(abi::segment const& s) {
  bool const intact = s.head.magic_word.load(std::memory_order_relaxed) == abi::magic &&
                      s.head.state.load(std::memory_order_relaxed) ==
                          static_cast<std::uint32_t>(abi::segment_state::ready);
  if (intact) return true;
  pass_through(abi::passthrough::damaged);
  stage.active.store(nullptr);
  return false;
}

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::uint32_t coarse_tick() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return static_cast<std::uint32_t>(t.tv_sec) * 8 + static_cast<std::uint32_t>(t.tv_nsec >> 27);
}

}  // namespace sluice
