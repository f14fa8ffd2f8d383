// SPDX-License-Identifier: Apache-2.0
// A recorded disk with a file system on it, mounted; where it is asked for, a second one that has
// nothing but the log. Cut, mounted again and recovered as often as one likes.
#pragma once

#include <cstdint>
#include <string>

#include "recorder.h"

namespace sluice::crash {

struct fs_kind {
  char const* name;
  std::uint64_t bytes;
  std::uint64_t roomy_bytes;  // for programs that bring their own data
  char const* make;
  char const* measured;  // the same, to measure on
  char const* options;
};

/// Null: there is none of that name.
fs_kind const* find_fs(char const* name);

/// btrfs remembers by name on which device it saw a file system last; the loop device of that name
/// may be another program's by now.
void forget_devices();

/// Mounted for the first time, or after a power cut.
class mounts {
 public:
  /// `dir`: has the empty directories disk, mnt and logmnt.
  mounts(fs_kind const& kind, std::string const& scratch, std::uint64_t bytes,
         std::uint64_t log_bytes = 0);

  void make();
  void mount_it(memory kept = memory::full);
  /// A superblock torn at 512 bytes has a wrong checksum, and the file system wants its own repair
  /// first: such a state says nothing about the log. False, and counted, for one of those.
  bool mount_cut(unsigned& unmountable, memory kept = memory::none);
  void unmount();
  /// Runs that program on the log; what it says is in recover.out.
  bool recover(std::string const& program) const;
  std::string log() const { return log_dir() + "/log"; }
  std::string log_dir() const { return disk.has_log_disk() ? dir + "/logmnt" : mount_point; }

  fs_kind const& fs;
  std::string dir, mount_point;
  recorder disk;
};

}  // namespace sluice::crash
