// SPDX-License-Identifier: Apache-2.0
// The journal's daemon that `sluice run --order` keeps for itself. It is started before the
// program, started again when it dies, and ended after the program. While it is missing, fsync is
// native.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "abi/segment.h"
#include "base/descriptor.h"
#include "base/foreign.h"
#include "segment/journal_process.h"

namespace sluice::cli {

class journal_child {
 public:
  /// Starts `sluice-order serve` and waits until it serves; throws when it does not.
  journal_child(std::string area, std::string log, bool remove_log);
  /// Ends it; waits until all is home and the log is empty.
  ~journal_child();
  journal_child(journal_child const&) = delete;
  journal_child& operator=(journal_child const&) = delete;

  /// Starts it again when it died. Returns when to look next, monotonic ns.
  std::int64_t look(std::int64_t now_ns);

 private:
  void start();
  bool is_ready() const;
  void say_how_it_ended(int status) const;

  std::string program_, area_, log_;
  bool remove_log_;
  segment::sentinel_pair sentinel_;
  descriptor ready_;  // kept: a daemon that says "ready" to nobody gets a SIGPIPE
  pid_t pid_ = 0;
  std::int64_t again_ns_ = 0;
  int deaths_ = 0;
};

/// Throws when one of the job's durable targets has a log that an earlier run left there, of this
/// user or of root: its files lack what that has. `own`: the log that this job is to have.
void check_left_logs(foreign<abi::segment> const& s, std::string const& segment_path,
                     std::string const& own);

/// The daemon for a job that we made, when it has a durable target; null when it has none. Without
/// `log` its file lies in the first such target, where it is found after a crash.
std::unique_ptr<journal_child> serve_journal(foreign<abi::segment> const& s,
                                             std::string const& segment_path,
                                             std::string const& log);

}  // namespace sluice::cli
