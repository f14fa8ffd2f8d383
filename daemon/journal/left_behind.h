// SPDX-License-Identifier: Apache-2.0
// Processes that recoveries gave up and that still wait for a lock (hands.h). Each is a task of our
// control group. So however often journals of one person are recovered, there is a bound of these.
// What stays true: all uids of a person count as one. Nobody makes another one's count: it takes a
// process of that owner and name in our control group. Only the owner, `comm` and `cgroup` of a
// process are read, for the rest of /proc/PID may wait for a user's memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sluice::journal {

inline constexpr char const* hands_name = "sluice-hands";
/// Whom it opens files for is in its name, for root owns it.
std::string opener_name(uid_t user);

/// Of all recoveries of that user's person, with those that are at work: without that one.
unsigned hands_left(uid_t user, pid_t but = 0);
unsigned openers_left(uid_t user, pid_t but = 0);

using left_counter = std::function<unsigned(pid_t but)>;

class left_behind {
 public:
  explicit left_behind(left_counter count) : count_all_(std::move(count)) {}

  /// Kills a child. It is left behind if it does not end within so long: it waits for a lock.
  void add(pid_t child, std::int64_t patience_ns);
  /// Fewer than that are there, besides one that works for us (0: none). Where they are not, it is
  /// looked once a second at most.
  bool is_below(unsigned most, pid_t at_work);

 private:
  void look(pid_t at_work);

  left_counter count_all_;
  std::vector<pid_t> own_;
  std::size_t count_ = 0;
  std::int64_t looked_ns_ = 0;
  bool is_known_ = false;
};

}  // namespace sluice::journal
