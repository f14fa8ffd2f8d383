// SPDX-License-Identifier: Apache-2.0
// Where file trees lie: the mount table as the kernel prints it, read into rows, and the facts that
// a target needs from it. Pure functions of the text of /proc/PID/mountinfo, so that tests bring
// their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mounts.h"

namespace sluice::policy {

using mount = mount_row;

/// A file tree that was found: what statx says of its root.
struct place {
  std::string path;  // canonical
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t mount_id = 0;  // 0 unknown
  std::uint64_t identity = 0;  // made from the file system's own UUID; 0 unknown
};

/// The mount a path lies in: by mount id if that is known, else the deepest mount point above it
/// (of several at one point the last, which covers the others). Null when there is none.
mount const* mount_of(std::vector<mount> const& mounts, place const& where);

/// True when every file of the device lies in the tree: its root is the root of a mount that shows
/// the root of the file system.
bool is_whole_device(std::vector<mount> const& mounts, place const& where);

/// Ids of the mounts that show nothing but files of the tree (bind mounts of it or of parts of it).
std::vector<std::uint64_t> inside_mounts(std::vector<mount> const& mounts, place const& where);

/// What is mounted below the root of the tree and shows another file system, or another part of
/// its own. Those that a later mount covers are left out, and quiet ones.
std::vector<mount> mounts_below(std::vector<mount> const& mounts, place const& where);

/// Devices of `below` that are mounted nowhere else.
std::vector<std::uint64_t> devices_only_in(std::vector<mount> const& below,
                                           std::vector<mount> const& mounts);

/// The id of the mount at `/`; 0 when there is none.
std::uint64_t top_mount(std::vector<mount> const& mounts);

/// Devices of file systems that no server stands behind (proc, sysfs, cgroup …): never
/// controlled.
std::vector<std::uint64_t> quiet_devices(std::vector<mount> const& mounts);

/// The canonical place of a path of this machine; throws a usage error that names `path`.
place find_place(std::string const& path);

}  // namespace sluice::policy
