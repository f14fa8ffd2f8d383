// SPDX-License-Identifier: Apache-2.0
// Who hears of a disk's errors when the daemon that was told of them is killed before it could
// write that into the log. The kernel tells each open file once. So of each file system that has
// files in the log one more is open, a directory, which nobody asks before a new daemon does. It
// lies, as a message that nobody has read, in a pair of sockets that whoever started the daemon
// keeps.
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
