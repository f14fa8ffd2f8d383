// SPDX-License-Identifier: Apache-2.0
#include "node/census.h"

namespace sluice::node {

census::census(lookup is_there, std::uint64_t own_pid_space)
    : is_there_(std::move(is_there)), own_pid_space_(own_pid_space) {}

void census::restart() {
  at_ = 0;
  found_ = {};
}

void census::count(std::vector<process_mark> const& claimed, uid_t owner,
                   std::vector<held_slot> const& held) {
  if (claimed.empty()) return;
  std::vector<bool> const lives = is_there_(claimed, owner);
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    if (!lives[i]) continue;
    ++found_.processes;
    found_.pids.push_back(claimed[i].pid);
    found_.slots.push_back(held[i]);
  }
}

bool census::step(foreign<abi::segment> const& s, uid_t owner, unsigned& budget, head_count& out) {
  constexpr auto relaxed = std::memory_order_relaxed;
  auto const dead = dead_.find(owner);
  std::vector<process_mark> claimed;
  std::vector<held_slot> held;  // by them
  bool is_whole = true;
  for (; at_ < abi::process_slots; ++at_) {
    foreign<abi::process_slot> const& slot = abi::process_of(s, at_);
    std::uint32_t const pid = slot.pid.load(relaxed);
    if (pid == 0) continue;
    std::uint64_t const space = slot.pid_space.load(relaxed);
    if (space != 0 && space != own_pid_space_) {
      foreign_process const claimed_there = {space, {pid, slot.start_ticks.load(relaxed)}};
      found_.foreign.push_back(claimed_there);
      if (dead != dead_.end() && dead->second.contains(claimed_there)) continue;
      ++found_.processes;
      ++found_.foreign_processes;
      found_.slots.push_back({at_, pid, false});
      continue;
    }
    is_whole = budget != 0;
    if (!is_whole) break;
    --budget;
    claimed.push_back({pid, slot.start_ticks.load(relaxed)});
    held.push_back({at_, pid, true});
  }
  count(claimed, owner, held);
  if (!is_whole) return false;
  out = std::move(found_);
  restart();
  return true;
}

}  // namespace sluice::node
