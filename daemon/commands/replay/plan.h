// SPDX-License-Identifier: Apache-2.0
// Who sends what: jobs × processes × threads, each thread with its part of some streams. Made from
// the load and the options alone, so that a process that was started anew makes the same. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/replay/counters.h"
#include "commands/replay/schedule.h"
#include "commands/trace/trace.h"

namespace sluice::replay {

struct plan_settings {
  unsigned processes = 1;       // per job
  unsigned threads = 0;         // of a process, each with all ops; 0: threads of their own per op
  unsigned threads_per_op = 1;  // of a process
  double warm_up_s = 0;
  double duration_s = 0;  // 0: all of the load
  std::uint64_t read_bytes = 65536, write_bytes = 65536;
};

/// What one job wants of one op, as the replay sends it.
struct stream {
  unsigned job = 0;
  unsigned op = 0;
  double unit = 1;  // bytes of one operation
  double phase = 0.5;
  curve wanted;
  unsigned threads = 0;  // that share it
};

struct share {
  unsigned stream = 0;
  part of_it;
};

struct worker {
  unsigned job = 0, process = 0;
  std::vector<share> shares;
};

struct plan {
  std::vector<std::string> jobs;
  std::vector<stream> streams;
  std::vector<worker> workers;
  unsigned processes = 1;  // per job
  double warm_up_s = 0;
  double length_s = 0;

  counters_shape shape() const;
  std::uint64_t fingerprint() const;
  bool has(unsigned job, core::op as) const;
};

/// Throws a usage error when there would be too many threads.
plan make_plan(trace::trace const& load, plan_settings const& s);

}  // namespace sluice::replay
