// SPDX-License-Identifier: Apache-2.0
// ext4 ends a truncation that a crash had interrupted when it is mounted, and gives that file the
// time of the mount: a change by nobody. Nobody else can write while it is being mounted, so a
// change with a time from then is not foreign.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/descriptor.h"

namespace sluice::journal {

struct mount_time {
  std::uint64_t begin_ns = 0, end_ns = 0;

  bool has(std::uint64_t ns) const { return ns >= begin_ns && ns < end_ns; }
  /// Did the mount itself change the file last? Then both its times are that one.
  bool explains(struct stat const& st) const;
};

inline constexpr std::size_t ext4_super_bytes = 1024;

/// The device of that name and number ("8:1"), if it has an ext4, whose superblock is read. Its
/// metadata is seen there as the mounted file system has it.
descriptor open_ext4(std::string const& source, std::string const& device,
                     std::span<std::byte, ext4_super_bytes> super);

/// Of the ext4 on the device of that name and number ("8:1"), or nothing.
mount_time mount_time_of(std::string const& source, std::string const& device, bool is_root);
/// From what its superblock says, in seconds. `booted_s`: of a root file system; else 0.
mount_time mount_time_at(std::uint64_t mounted_s, std::uint64_t booted_s);

}  // namespace sluice::journal
