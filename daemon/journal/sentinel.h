// SPDX-License-Identifier: Apache-2.0
// Keeps a disk's errors from being lost when the daemon that was told of them is killed before it
// could write them into the journal. The kernel reports an error once to each open file. So a
// directory of each file system with files in the journal is kept open, and nobody asks it before a
// new daemon does. It lies, as an unread message, in a pair of sockets that the starter of the
// daemon keeps.
#pragma once

#include <sys/stat.h>

#include <set>
#include <vector>

#include "base/descriptor.h"

namespace sluice::journal {

class sentinels {
 public:
  /// The ends of a SOCK_DGRAM pair; -1: there is none, and nobody hears.
  sentinels(int from, int to) : from_(from), to_(to) {}

  /// 0, or the errno with which a file system lost something that nobody may have heard of. All are
  /// synced, so it may take as long as that.
  int heard();
  /// Keeps one of the file system of the file `fd`, if there is none yet.
  void keep(int fd, struct stat const& st);
  /// All is at home: nothing is to keep a file system from being unmounted.
  void forget() { take(); }

 private:
  std::vector<descriptor> take();
  void put(descriptor const& fd);

  int from_, to_;
  std::set<dev_t> kept_;
};

}  // namespace sluice::journal
