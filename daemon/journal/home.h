// SPDX-License-Identifier: Apache-2.0
// Home files by their identity: file system uuid and file handle. Opening by handle needs
// CAP_DAC_READ_SEARCH, which recovery has as root.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <map>
#include <set>
#include <string>

#include "journal/missing.h"
#include "journal/mount_time.h"
#include "journal/record.h"

namespace sluice::journal {

/// 0, or an errno when the file's identity cannot be told: then it is not for the journal.
int identify(int fd, file_id& id);

/// The mounted file systems that tell their uuid.
class home {
 public:
  home();
  /// The others are let go of: who wants to unmount them is not to wait for us.
  void keep_only(std::set<std::array<std::uint8_t, 16>> const& wanted);
  ~home();
  home(home const&) = delete;
  home& operator=(home const&) = delete;

  /// A descriptor, or -errno: ESTALE when there certainly is no such file, EIO when it could not be
  /// read, ENODEV when its file system is not mounted to be written, ENOTUNIQ when two have its
  /// uuid.
  int open(file_id const& id, int flags) const;
  /// Writes all of that file system to its medium; 0 or an errno.
  int sync(std::array<std::uint8_t, 16> const& fs) const;
  /// When it was mounted, where a mount changes files.
  mount_time mounting(std::array<std::uint8_t, 16> const& fs) const;
  /// Where a file is that was opened by handle, for messages.
  std::string place_of(std::array<std::uint8_t, 16> const& fs, int fd,
                       std::chrono::milliseconds patience) const;

 private:
  struct mounted {
    int fd;
    std::string device, source, type, where;  // as mountinfo says it
    bool is_unique;
  };
  void look_at(mounted at);
  mounted const* of(std::array<std::uint8_t, 16> const& fs) const;
  std::map<std::array<std::uint8_t, 16>, mounted> mounted_;
};

/// Its ctime.
std::uint64_t changed_ns(struct stat const& st);

std::uint64_t ns_of(statx_timestamp const& t);

std::string uuid_text(std::array<std::uint8_t, 16> const& fs);

/// Where the descriptor's file is, for messages.
std::string path_of(int fd);

}  // namespace sluice::journal
