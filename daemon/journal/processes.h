// SPDX-License-Identifier: Apache-2.0
// Problem: each new file is one question to /proc and to the kernel after the process that asks.
// Idea: a process is found once, and its two descriptors are kept, which never mean another one.
// What stays true: a descriptor is taken only of a process that is the user's alone before and
// after it. Who has become another user meanwhile, by exec, has not given it. A program's file is
// looked up and never taken: a copy of its descriptor would keep its locks and its lease.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "base/descriptor.h"

namespace sluice::journal {

class processes {
 public:
  /// That descriptor of the process, as one of ours; none of a process that is not the user's.
  descriptor take(std::uint32_t pid, uid_t user, int fd);
  /// The path of a file that it may write by that descriptor, as the kernel tells it; else empty.
  std::string name_of(std::uint32_t pid, uid_t user, int fd);
  /// The file of that descriptor, not opened (O_PATH); none of a process that is not the user's.
  descriptor look_up(std::uint32_t pid, uid_t user, int fd, bool& may_write);

 private:
  struct found {
    descriptor process, entry;  // a pidfd, and its directory in /proc
  };
  found* find(std::uint32_t pid);
  template <class Ask>
  descriptor ask(std::uint32_t pid, uid_t user, Ask&& ask_for);
  std::map<std::uint32_t, found> found_;
};

}  // namespace sluice::journal
