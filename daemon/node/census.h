// SPDX-License-Identifier: Apache-2.0
// Who is in a job: the process slots of its segment, held against /proc. Looking a process up costs
// some ten microseconds and slots may hold garbage, so the census walks in steps of a bounded
// number of look-ups, one job after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "node/job.h"

namespace sluice::node {

/// The outcome of one walk through one job.
struct head_count {
  std::uint32_t processes = 0;      // attached and alive; of other pid namespaces: claimed
  std::vector<std::uint32_t> pids;  // those of our pid namespace
};

class census {
 public:
  /// Whether (pid, start ticks) is alive; 0 ticks: any such pid. Tests give their own.
  using lookup = std::function<bool(std::uint32_t pid, std::uint64_t start_ticks)>;
  census(lookup is_there, std::uint64_t own_pid_space);

  /// Goes on where it stopped. True when the walk is complete; `out` is what was found and the next
  /// step begins a new walk.
  bool step(abi::segment const& s, unsigned& budget, head_count& out);
  void restart();

 private:
  lookup is_there_;
  std::uint64_t own_pid_space_;
  unsigned at_ = 0;
  head_count found_;
};

}  // namespace sluice::node
