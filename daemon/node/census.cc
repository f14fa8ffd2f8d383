// SPDX-License-Identifier: Apache-2.0
#include "node/census.h"

#include <algorithm>

namespace sluice::node {

census::census(lookup is_there, std::uint64_t own_pid_space)
    : is_there_(std::move(is_there)), own_pid_space_(own_pid_space) {}

void census::count(std::vector<process_mark> const& claimed, uid_t owner,
                   std::vector<held_slot> const& held, head_count& found) const {
  if (claimed.empty()) return;
  std::vector<bool> const lives = is_there_(claimed, owner);
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    if (!lives[i]) continue;
    ++found.processes;
    found.pids.push_back(claimed[i].pid);
    found.slots.push_back(held[i]);
  }
}

bool census::step(foreign<abi::segment> const& s, uid_t owner, foreign_claims const& dead,
                  unsigned& budget, walk& w) const {
  constexpr auto relaxed = std::memory_order_relaxed;
  std::vector<process_mark> claimed;
  std::vector<held_slot> held;  // by them
  bool is_whole = true;
  for (; w.at < abi::process_slots; ++w.at) {
    foreign<abi::process_slot> const& slot = abi::process_of(s, w.at);
    is_whole = budget != 0;
    if (!is_whole) break;
    if (w.at % slots_of_claim == slots_of_claim - 1) --budget;
    std::uint32_t const pid = slot.pid.load(relaxed);
    if (pid == 0) continue;
    budget -= std::min(budget, 1u);
    std::uint64_t const space = slot.pid_space.load(relaxed);
    if (space != 0 && space != own_pid_space_) {
      foreign_process const claimed_there = {space, {pid, slot.start_ticks.load(relaxed)}};
      w.found.foreign.push_back(claimed_there);
      if (std::ranges::binary_search(dead, claimed_there)) continue;
      ++w.found.processes;
      ++w.found.foreign_processes;
      w.found.slots.push_back({w.at, pid, false});
      continue;
    }
    claimed.push_back({pid, slot.start_ticks.load(relaxed)});
    held.push_back({w.at, pid, true});
  }
  count(claimed, owner, held, w.found);
  return is_whole;
}

}  // namespace sluice::node
