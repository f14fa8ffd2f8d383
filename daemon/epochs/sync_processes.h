// SPDX-License-Identifier: Apache-2.0
// The processes of all sync jobs of a node (sync_job.h). A user may hold up those of his jobs, and
// one that waits for a disk or a file server ends only when that answers, also when it was killed.
// What stays true: a process counts for the owner of its job until it was reaped, also when its job
// is forgotten. So nobody has more than his places, and nobody takes the places of others.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "base/owners.h"

namespace sluice::epochs {

class sync_processes {
 public:
  static constexpr std::size_t most = 32, most_of_an_owner = 4;
  static constexpr std::size_t kept_places = most / 4;  // the last ones, for owners who have none

  /// `owner_of`: whose a job is, for the uids of one person count together.
  explicit sync_processes(owner_lookup owner_of);

  bool has_place(uid_t uid) const;
  /// Whatever keeps that user from a place was told to end, and does not.
  bool is_stuck(uid_t uid) const;

  /// A child of ours, for a job of that user. Where there is a place this allocates nothing.
  void add(pid_t pid, uid_t uid);
  /// It has ended, and counts no more: then ask no more.
  bool has_ended(pid_t pid);
  /// Who tells it to end asks no more.
  void end(pid_t pid);
  /// Those that were told to end, and have.
  void reap();

 private:
  struct process {
    pid_t pid;
    uid_t owner;
    bool is_late;  // told to end
  };
  std::size_t count_of(uid_t owner) const;

  owner_lookup owner_of_;
  std::vector<process> all_;
};

}  // namespace sluice::epochs
