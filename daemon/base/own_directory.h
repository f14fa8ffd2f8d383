// SPDX-License-Identifier: Apache-2.0
// A fresh directory in somebody's file tree, with a name nobody could foresee and for its owner
// alone. What is removed at the end is what lies in that very directory, without following links
// or crossing mounts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/descriptor.h"

namespace sluice {

class own_directory {
 public:
  /// `TARGET/NAME.XXXXXXXX`. Makes the target too when only that is missing. Throws a sluice error,
  /// and a usage error where strangers may rename in the target (who_may_rename.h).
  own_directory(std::string const& target, std::string const& name);
  /// Removes what is left.
  ~own_directory();
  own_directory(own_directory const&) = delete;
  own_directory& operator=(own_directory const&) = delete;

  std::string const& path() const { return path_; }
  int fd() const { return fd_.get(); }
  /// Removes it with all below it; false and a reason when something could not be removed.
  /// `go_on` is asked from time to time.
  bool remove(std::string& why, std::function<bool()> const& go_on);

 private:
  void make_in(std::string const& target, std::string const& name);

  std::string path_;
  std::string made_target_;  // empty: it was there
  descriptor target_;
  std::string name_;  // there
  descriptor fd_;     // whatever comes to have that name, this is the directory we made
};

/// As long as it lives, names that are relative begin in that directory: one that its owner's
/// neighbours may rename meanwhile, or put another one in its place.
class working_in {
 public:
  explicit working_in(int directory);
  ~working_in();
  working_in(working_in const&) = delete;
  working_in& operator=(working_in const&) = delete;

 private:
  descriptor before_;
};

/// Opens a directory that an own_directory of another process made, and no other: it has this
/// device and inode. Throws a sluice error.
descriptor open_own(std::string const& path, std::uint64_t device, std::uint64_t inode);

/// Removes a directory that an own_directory of a process that is gone made, with all below it: a
/// directory of this user that has this inode, where no stranger may rename. False when something
/// of it is left.
bool remove_left_directory(std::string const& path, std::uint64_t inode);

}  // namespace sluice
