// SPDX-License-Identifier: Apache-2.0
// Takes descriptors of processes for the loop. A user may name one on a file system that he serves
// himself (FUSE). Whoever has taken it waits for that server when he closes it, for ever if he
// will. No look beforehand helps: the number may mean another file a moment later, and the look
// itself may be the last to let go of the file. So another thread takes and looks.
// What stays true: the loop gets a descriptor of a file system that is mounted where we are and is
// no FUSE, or an eventfd, and never has another. It waits `patience_ms` at most. A thread that
// hangs is left. It has no other descriptor, so a daemon that is killed leaves its locks to the
// next one. At most `most_stuck` hang, `most_stuck_of` for one user.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/descriptor.h"

namespace sluice::journal {

class taker {
 public:
  static constexpr std::size_t most_stuck = 64, most_stuck_of = 2;
  static constexpr int patience_ms = 100;
  enum class kind : std::uint8_t { file, eventfd };

  /// That descriptor of the process, as one of ours. None: the process is not that user's alone, it
  /// is nothing of that kind, or nothing could be said in time.
  descriptor take(std::uint32_t pid, uid_t user, int fd, kind wanted);

 private:
  using flag = std::shared_ptr<std::atomic<bool>>;
  struct stuck {
    uid_t user;
    flag is_back;
  };
  bool may_ask(uid_t user);
  bool has_thread();

  descriptor to_;  // the thread's socket; closed: the thread ends when it is back
  flag is_back_;   // of the thread
  std::vector<stuck> stuck_;
};

}  // namespace sluice::journal
