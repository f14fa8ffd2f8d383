// SPDX-License-Identifier: Apache-2.0
// The process that holds read leases for a job whose small reads are answered from memory
// (libinterpose/abi/lease_board.h is the board between them). `sluice run` starts it before the
// program, in a session of its own: where the terminal stops the job, nobody who writes one of its
// files is to wait. It has the rights of the user and nothing else, looks only at files that his
// processes have open, and ends with `sluice run`.
// What stays true: a lease is given back only after the board has said so, whether it lets go or
// dies. So what the stage reads there is never older than what another process may write.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "abi/segment.h"
#include "base/foreign.h"

namespace sluice::keepers {

class lease_keeper {
 public:
  /// Null: the job has no such target, or no process can be started.
  static std::unique_ptr<lease_keeper> begin(foreign<abi::segment>& s, std::string const& path);
  ~lease_keeper();
  lease_keeper(lease_keeper const&) = delete;
  lease_keeper& operator=(lease_keeper const&) = delete;

 private:
  explicit lease_keeper(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

}  // namespace sluice::keepers
