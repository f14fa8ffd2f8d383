// SPDX-License-Identifier: Apache-2.0
#include "node/census.h"

namespace sluice::node {

census::census(lookup is_there, std::uint64_t own_pid_space)
    : is_there_(std::move(is_there)), own_pid_space_(own_pid_space) {}

void census::restart() {
  at_ = 0;
  found_ = {};
}

bool census::step(abi::segment const& s, unsigned& budget, head_count& out) {
  constexpr auto relaxed = std::memory_order_relaxed;
  for (; at_ < abi::process_slots; ++at_) {
    abi::process_slot const& slot = s.process[at_];
    std::uint32_t const pid = slot.pid.load(relaxed);
    if (pid == 0) continue;
    std::uint64_t const space = slot.pid_space.load(relaxed);
    if (space != 0 && space != own_pid_space_) {
      found_.foreign.push_back({space, {pid, slot.start_ticks.load(relaxed)}});
      if (dead_spaces_.contains(space)) continue;
      ++found_.processes;
      ++found_.foreign_processes;
      continue;
    }
    if (budget == 0) return false;
    --budget;
    if (!is_there_(pid, slot.start_ticks.load(relaxed))) continue;
    ++found_.processes;
    found_.pids.push_back(pid);
  }
  out = std::move(found_);
  restart();
  return true;
}

}  // namespace sluice::node
