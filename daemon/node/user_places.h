// SPDX-License-Identifier: Apache-2.0
// Where journals of users lie: DIR/UID is root's, and DIR/UID/own in it is the user's. So he holds
// the lock of nothing that others need: rmdir() waits for the lock of a directory while it holds
// that of the one above, and who may list a directory can hold its lock (segment/tidy.h).
// What stays true: what could wait for a user is done by a child process, and not waited for longer
// than `patience_ms`; each user has one child at a time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>

namespace sluice::node {

class user_places {
 public:
  static constexpr int patience_ms = 100;

  explicit user_places(std::string directory) : directory_(std::move(directory)) {}

  /// Of the user whom this process runs as, and where an older version made it: DIR/UID itself.
  std::string place_of(uid_t user) const;
  /// It appears complete and his. 0 or an errno: EBUSY, a process of his holds it.
  int make(uid_t user);
  /// 0 when it was empty and is gone, or an errno: the same.
  int remove(uid_t user);
  /// His journal is gone. False, too, when a process of his keeps us from a look at it.
  bool is_without_journal(uid_t user);

 private:
  std::string slot_of(uid_t user) const;
  int complete(std::string const& slot, uid_t user);
  int in_a_child(uid_t user, std::function<int()> const& task);

  std::string directory_;
  std::map<uid_t, pid_t> held_up_;
};

/// The same for those who ask where a user's journal is.
std::string place_of_journal(std::string const& directory, uid_t user);

}  // namespace sluice::node
