// SPDX-License-Identifier: Apache-2.0
// Problem: a user may mount FUSE over a directory of his, and stop its server. Who opens a path
// that leads there waits for ever.
// Idea: a path is walked part by part, each opened with O_PATH, which asks no file system. The
// kernel says of each on which mount it is, and only then the next is looked for in it.
// What stays true: nothing is looked for on a mount that the wanted one does not lie on, and on no
// FUSE. So what a user mounts over his directory is never asked.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/mounts.h"

namespace sluice::journal {

/// The root of `m`, not opened (O_PATH): none where its path does not lead to it now.
descriptor reach(std::vector<mount_row> const& all, mount_row const& m);

/// `path`, as seen from `where`; nothing: it is not below.
std::optional<std::string> path_below(std::string const& where, std::string const& path);

/// On the same mount, and through no link: a descriptor, or -1 with an errno. EXDEV: something is
/// mounted there.
int open_below(int directory, char const* path, int flags);
/// Device and inode of what has that name in the directory: 0 or an errno. EXDEV: the same.
int stat_below(int directory, char const* name, struct stat& st);

/// The root of a mount that has a path.
struct mount_root {
  std::string where;
  descriptor at;

  /// None where it is not below, or the way to it leads through another mount.
  descriptor open_directory(std::string const& path) const;
};
/// Of that device; without `at`: there is none that can be reached.
mount_root root_above(std::string const& path, dev_t device);

/// Where the descriptor's file is, for messages.
std::string path_of(int fd);

/// The descriptor as a name, for calls that take no descriptor.
std::string proc_name(int fd);

}  // namespace sluice::journal
