// SPDX-License-Identifier: Apache-2.0
// The process that tidies the files of jobs (tidy.h), and what the loop of a daemon has of it. It
// is forked before the daemon gives up its capabilities. For each task it forks a child, and each
// user has one child at a time.
// What stays true: the loop waits for no answer, and a user who holds a lock of his files keeps
// nobody's files but his own from being tidied.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "segment/tidy.h"

namespace sluice::segment {

class tidier {
 public:
  struct answer {
    std::string dir;
    tidied done;
  };
  /// Without an answer for longer somebody holds a lock.
  static constexpr std::int64_t patience_ns = 10'000'000'000;

  /// Has no process: what is asked for is done at once. Of a daemon whose jobs are all its own.
  tidier() = default;
  /// Forks the process, which first runs `settle`. Call it while there is one thread. Throws.
  explicit tidier(std::function<void()> const& settle);
  tidier(tidier const&) = delete;
  tidier& operator=(tidier const&) = delete;
  ~tidier();

  /// To be polled for answers; -1: there is no process.
  int fd() const { return socket_.get(); }
  /// Of a folder that has an answer to come nothing more is asked. `owner`: of whose tasks one is
  /// done at a time. False: not now.
  bool ask(std::string const& dir, uid_t owner, tidy_task const& task, std::int64_t now_ns);
  /// What has been done since. Throws when the process has ended: its daemon is to be started anew.
  std::vector<answer> take();
  /// Until there is an answer, or for so long, where something was asked since then.
  void wait(std::int64_t since_ns, std::int64_t most_ns) const;
  /// The last answer was that a lease keeps us from a file that has grown, or an answer is late.
  bool is_held_up(std::string const& dir, std::int64_t now_ns) const;
  /// Folders of answers that are late, each told once.
  std::vector<std::string> take_late(std::int64_t now_ns);

 private:
  struct state {
    std::int64_t asked_ns = 0;  // 0: nothing is asked
    bool is_leased = false, is_told = false;
  };
  bool is_late(state const& s, std::int64_t now_ns) const {
    return s.asked_ns != 0 && now_ns - s.asked_ns > patience_ns;
  }

  descriptor socket_;
  pid_t pid_ = 0;
  std::map<std::string, state> folders_;  // with an answer to come, or a lease
  std::vector<answer> done_;              // without a process
};

}  // namespace sluice::segment
