// SPDX-License-Identifier: Apache-2.0
// Recorded disks with file systems on them, mounted: one; where it is asked for a second one that
// has nothing but the log; or one for each of several nodes. Cut at one moment, mounted again and
// recovered as often as one likes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

/// Mounted for the first time, or after a power cut.
class mounts {
 public:
  /// `scratch`: has the empty directories disk and mnt; the others are made. With `nodes` disks
  /// each may have a log; else with `log_bytes` the log has a disk of its own.
  mounts(fs_kind const& kind, std::string const& scratch, std::uint64_t bytes,
         std::uint64_t log_bytes = 0, unsigned nodes = 1);

  void make();
  void mount_it(memory kept = memory::full);
  /// A superblock torn at 512 bytes has a wrong checksum, and the file system wants its own repair
  /// first: such a state says nothing about the log. False, and counted, for one of those.
  bool mount_cut(unsigned& unmountable, memory kept = memory::none);
  void unmount();
  /// Each log, in a process of its own; every fifth time by that program, else by the same code
  /// here. What it says is in recover.out. A node may have none.
  bool recover(std::string const& program);
  /// Instead of one log two users have one each. `is_damaged`: the first one's lost its beginning
  /// before each recovery, which must then refuse it.
  void have_users(bool is_damaged);
  std::string const& log() const { return logs.front(); }

  struct place {
    fs_kind const* kind;
    std::string at;
    std::uint64_t bytes;
  };

  fs_kind const& fs;
  std::string dir, mount_point;
  std::vector<place> places;      // by disk
  std::vector<std::string> logs;  // of nodes as many
  recorder disk;

 private:
  static constexpr unsigned recoveries_of_a_program = 5;
  bool recover_one(std::string const& program, std::string const& file);

  unsigned recoveries_ = 0;
  bool is_damaged_ = false;
};

}  // namespace sluice::crash
