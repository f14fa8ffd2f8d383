// SPDX-License-Identifier: Apache-2.0
// The processes of a replay. Each job is a process tree of its own, forked, or started under the
// command of --wrap, where it finds the plan again from its arguments and the shared counters in a
// descriptor. What stays true: no process outlives the one that started the replay, whose end of a
// pipe they watch; only processes that the shared counters names are ended, and only after a while.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "commands/replay/counters.h"
#include "commands/replay/options.h"
#include "commands/replay/plan.h"

namespace sluice::replay {

/// The words of a command line, quotes and backslashes as in a shell. Throws a usage error.
std::vector<std::string> split_words(std::string const& text);

/// `{job}` and `{class}` replaced in each word.
std::vector<std::string> wrap_words(std::string const& wrap, std::string const& job,
                                    std::string const& qos_class);

/// Runs all processes of a job, in this one when it is one; the exit status.
int run_job(options const& o, plan const& p, shared_counters& book, unsigned job, int pipe_fd);

class job_processes {
 public:
  /// Starts all jobs.
  job_processes(options const& o, plan const& p, shared_counters& book, int trace_fd);
  ~job_processes();
  job_processes(job_processes const&) = delete;
  job_processes& operator=(job_processes const&) = delete;

  /// Waits for nobody. Why a job ended that should not have, once per job; else empty.
  std::string look();
  bool is_gone() const;
  /// Asks all to end, and ends those that are still there after a while.
  void stop();

 private:
  struct member {
    pid_t pid;
    std::string job;
    bool gone;
  };

  shared_counters& book_;
  std::vector<member> members_;
  int pipe_fd_ = -1;  // closed: the others end
};

}  // namespace sluice::replay
