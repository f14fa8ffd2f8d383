// SPDX-License-Identifier: Apache-2.0
#include "state.h"

#include <errno.h>

namespace sluice {

constinit std::atomic<bool> sys::is_forbidden{false};
constinit stage_state stage;
thread_local constinit thread_state self;

long sys::call(long number, long a, long b, long c, long d, long e, long f) {
  if (is_forbidden.load(std::memory_order_relaxed)) [[unlikely]]
    return -ENOSYS;
  return act(number, a, b, c, d, e, f);
}

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

}  // namespace sluice
