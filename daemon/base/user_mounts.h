// SPDX-License-Identifier: Apache-2.0
// Problem: whoever chooses what is mounted chooses what it says of owners. A FUSE server, or an
// image that a line of /etc/fstab lets users mount, says that files of its user are root's.
// Idea: each row of the mount table is compared with what tells that users mount there: the kernel,
// mount(8)'s notes (/run/mount/utab), and /etc/fstab. A note may be missing or old.
// What stays true: when a user may have chosen it, it counts as his, also where root mounted it.
// Pure, so that tests bring their own text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mounts.h"

namespace sluice {

/// A line of /etc/fstab that lets users mount.
struct fstab_row {
  std::string source;  // a device, an image, a server, or a tag such as UUID=…
  std::string point;
  std::string option;  // the one that lets them
  unsigned line = 0;   // from 1
  bool is_bind = false, is_image = false;
  std::uint64_t device = 0;  // device_number() of what `source` is now; 0: not known
};

/// A line of /run/mount/utab that names a user, or a helper that mounts for users.
struct utab_row {
  std::string source, point;
};

struct user_mount_notes {
  std::vector<fstab_row> fstab;
  std::vector<utab_row> utab;
  std::vector<std::uint64_t> movable = {};  // ids of mounts whose path a user may change: he may
                                            // rename a directory above, and no note fits any more
};

/// Lines with `user`, `users`, `owner` or `group`; the devices are not known yet.
std::vector<fstab_row> parse_fstab(std::string_view text);
std::vector<utab_row> parse_utab(std::string_view text);

/// Where udev links the device that a tag names; nothing: it is no tag.
std::optional<std::string> tagged_device(std::string const& source);

/// Which device it means nobody can say now.
bool is_unknown_tag(fstab_row const& row);

/// Why `m` may be a user's choice, for people; nothing: root alone chose it. All mounts of a file
/// system are, when one is.
std::optional<std::string> why_of_user(mount_row const& m, std::vector<mount_row> const& all,
                                       user_mount_notes const& notes);

}  // namespace sluice
