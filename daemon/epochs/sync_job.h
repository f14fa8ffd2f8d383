// SPDX-License-Identifier: Apache-2.0
// Syncs what a job wrote, in a process of its own: a disk may hang, and sluiced must not. The
// journal of durable fsync is emptied first, because its recovery must not undo what is synced now.
// What stays true: nothing between fork and the end of that process allocates or takes a lock, so
// the threads of sluiced do not matter; it holds none of our files, and dies with us.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "epochs/sync_processes.h"

namespace sluice::epochs {

class sync_job {
 public:
  /// `processes`: where its process counts.
  explicit sync_job(sync_processes& processes) : processes_(processes) {}
  ~sync_job();
  sync_job(sync_job const&) = delete;
  sync_job& operator=(sync_job const&) = delete;

  /// Begins to sync the file systems of `roots`, for a job of that user. `order`: the job's order
  /// area, which may be there or not, by a name that its user cannot cover. Ask for a place before.
  /// False: no process could be made.
  bool begin(uid_t uid, std::string const& order, std::vector<std::string> const& roots,
             std::int64_t patience_ns, std::int64_t now_ns);
  bool is_under_way() const { return pid_ > 0; }
  /// -1: not yet; 0: all is durable; else the error number.
  int look(std::int64_t now_ns);

 private:
  /// In the process of its own, to its end.
  [[noreturn]] void work(std::string const& order, std::vector<std::string> const& roots,
                         pid_t parent);

  sync_processes& processes_;
  pid_t pid_ = 0;
  std::int64_t until_ns_ = 0;
  std::atomic<int>* result_ = nullptr;  // shared with it; -1: none yet
};

}  // namespace sluice::epochs
