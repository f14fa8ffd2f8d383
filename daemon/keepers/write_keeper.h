// SPDX-License-Identifier: Apache-2.0
// Two processes that bring small writes of a job's strict targets to their files
// (libinterpose/abi/ring_area.h, core/ring.h). One works, the other follows it when it dies. They
// have one table of descriptors, so the follower has the open files of the programs, and knows from
// their positions how far the dead one came. `sluice run` starts them before the program, in a
// session of their own, with the rights of the user and nothing else.
// What stays true: a file has all that was accepted for it before the kernel's lease for it is
// given back, so whoever opens it finds that. Nothing waits in a ring for longer than a tick,
// and the time of one write.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "abi/ring_area.h"
#include "abi/segment.h"
#include "base/area_map.h"
#include "base/descriptor.h"
#include "base/foreign.h"

namespace sluice::keepers {

class write_keeper {
 public:
  /// Null: the job has no such target, or nobody could do it here.
  static std::unique_ptr<write_keeper> begin(foreign<abi::segment>& s, std::string const& path);
  /// All that waits is written, and what still runs in the job writes by itself. Where a file
  /// system takes nothing for a minute they are left behind, with what waits for it.
  ~write_keeper();
  write_keeper(write_keeper const&) = delete;
  write_keeper& operator=(write_keeper const&) = delete;

 private:
  write_keeper(std::unique_ptr<area_map<abi::ring_area>> area, pid_t pid, descriptor&& house)
      : area_(std::move(area)), pid_(pid), house_(std::move(house)) {}
  abi::lease_head& head();
  /// At most, if somebody has written into the rings what is not so.
  std::uint64_t waiting_bytes();
  std::unique_ptr<area_map<abi::ring_area>> const area_;
  pid_t const pid_;
  descriptor const house_;  // a socket; the other end is theirs, as long as one of them lives
};

}  // namespace sluice::keepers
