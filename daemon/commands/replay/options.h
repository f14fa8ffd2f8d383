// SPDX-License-Identifier: Apache-2.0
// The command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands/replay/load.h"
#include "commands/replay/plan.h"
#include "commands/replay/sender.h"
#include "commands/replay/tree.h"

namespace sluice::replay {

struct joined {
  int trace_fd = -1, counters_fd = -1, pipe_fd = -1;
  unsigned job = 0;
};

struct options {
  std::string trace;
  std::string target;
  load_settings load;
  plan_settings plan;
  sender_settings sending;
  tree_shape tree;
  std::string only_job;
  std::optional<double> start_at_unix_s;
  std::optional<double> drain_s;  // after the end of the load; nothing: until all was sent
  std::string wrap;
  std::vector<std::pair<std::string, std::string>> classes;  // job (empty: all others), QoS class
  std::string output;
  bool quiet = false;
  bool simulate = false;
  std::string policy;
  std::optional<joined> join;     // started by another of us under --wrap
  std::vector<std::string> argv;  // as it was called

  std::string const& class_of(std::string const& job) const;
};

/// The load that would be replayed; completes the options with what the trace says.
trace::trace read_load(options& o);

/// Replays; the exit status.
int replay(options const& o);

/// The processes of one job, in a program that was started under --wrap.
int join_replay(options const& o);

}  // namespace sluice::replay
