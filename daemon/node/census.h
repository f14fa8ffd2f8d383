// SPDX-License-Identifier: Apache-2.0
// The processes in a job: the process slots of its segment, compared with /proc, for its owner can
// write there what he likes: a slot counts that names a process of his. Looking a process up costs
// some ten microseconds and slots may hold garbage, so the census walks in steps of a bounded
// number of claims, of whichever pid namespace. Whose jobs come next census_rounds.h says.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "node/job.h"

namespace sluice::node {

/// A process of another pid namespace, as its slot says: its pid means nothing here.
struct foreign_process {
  std::uint64_t pid_space = 0;
  process_mark inside;
  auto operator<=>(foreign_process const&) const = default;
};

using foreign_claims = std::vector<foreign_process>;

/// A slot that somebody holds.
struct held_slot {
  std::uint32_t index = 0, pid = 0;
  bool is_ours = false;  // of our pid namespace
};

/// The outcome of one walk through one job.
struct head_count {
  std::uint32_t processes = 0;          // attached and alive; of other pid namespaces: claimed
  std::uint32_t foreign_processes = 0;  // of these, of other pid namespaces
  std::vector<std::uint32_t> pids;      // those of our pid namespace
  foreign_claims foreign;               // of others, also of namespaces that are no more
  std::vector<held_slot> slots;         // of all processes that are counted
};

class census {
 public:
  /// Which of these live and are of the job's owner, by pid and claimed start; a start of 0: any
  /// such pid. Tests give their own.
  using lookup =
      std::function<std::vector<bool>(std::vector<process_mark> const& claimed, uid_t owner)>;
  census(lookup is_there, std::uint64_t own_pid_space);

  /// A walk through one job, from its first slot.
  struct walk {
    unsigned at = 0;
    head_count found = {};
  };
  /// To read so many slots takes as long as to look one claim up, if their pages were taken away.
  static constexpr unsigned slots_of_claim = 512;
  /// Goes on where it stopped, for `budget` claims at most. True: it is complete. `dead`, sorted:
  /// processes of other pid namespaces that are not there, so slots that name them are empty.
  bool step(foreign<abi::segment> const& s, uid_t owner, foreign_claims const& dead,
            unsigned& budget, walk& w) const;

 private:
  void count(std::vector<process_mark> const& claimed, uid_t owner,
             std::vector<held_slot> const& held, head_count& found) const;

  lookup is_there_;
  std::uint64_t own_pid_space_;
};

}  // namespace sluice::node
