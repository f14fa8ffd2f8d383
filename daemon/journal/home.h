// SPDX-License-Identifier: Apache-2.0
// Home files by their identity: file system uuid and file handle. Opening by handle needs
// CAP_DAC_READ_SEARCH. Recovery of root's journal has it and finds files by itself; that of a
// user's journal has that user's rights and asks (opener.h).
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "journal/left_behind.h"
#include "journal/missing.h"
#include "journal/mount_points.h"
#include "journal/mount_time.h"
#include "journal/record.h"

namespace sluice::journal {

/// 0, or an errno when the file's identity cannot be told: then it is not for the journal. `fs`:
/// the uuid of its file system where that is known.
int identify(int fd, file_id& id, std::array<std::uint8_t, 16> const* fs = nullptr);

/// What open() says of a file of another user than the journal's, and of a directory that the
/// journal's user cannot open by its name.
inline constexpr int of_somebody_else = EOWNERDEAD;

class hands;

/// What recovery asks of the file systems.
class home {
 public:
  home() = default;
  virtual ~home() = default;
  home(home const&) = delete;
  home& operator=(home const&) = delete;

  /// Before all else: those are found, and nothing is looked at later of others.
  virtual void keep_only(std::set<std::array<std::uint8_t, 16>> const& wanted) = 0;
  /// A descriptor, or -errno: ESTALE when there certainly is no such file, EIO when it could not be
  /// read, ENODEV when its file system is not mounted to be written, or something is mounted over
  /// it, ENOTUNIQ when two have its uuid, of_somebody_else. A directory is never opened to be
  /// written: EISDIR.
  virtual int open(file_id const& id, int flags) const = 0;
  /// Writes all of that file system to its medium; 0 or an errno.
  virtual int sync(std::array<std::uint8_t, 16> const& fs) const = 0;
  /// When it was mounted, where a mount changes files.
  virtual mount_time mounting(std::array<std::uint8_t, 16> const& fs) const = 0;
  /// Where a file of open() is, for messages that the journal's user may see: a path from the root,
  /// or nameless().
  virtual std::string place_of(std::array<std::uint8_t, 16> const& fs, int fd) const = 0;
  /// The mark of a recovery on a file or directory that it made. O_PATH is enough for `fd`.
  virtual bool is_marked(int fd, std::string const& mark) const = 0;
  /// Empty: the mark goes. 0 or an errno. The same. `by`: whose process may wait for the file.
  virtual int set_mark(int fd, std::string const& mark, hands& by) const = 0;
  /// How many processes of hands recoveries of this user have left behind (left_behind.h).
  virtual unsigned left_hands(pid_t but) const { return hands_left(geteuid(), but); }
};

/// The mounted file systems that tell their uuid. Not those that a user may have mounted: he
/// chooses the uuid of his, and what the journal has of another file system would come home to it.
class mounted_home : public home {
 public:
  mounted_home() = default;
  ~mounted_home() override { let_go(); }

  void keep_only(std::set<std::array<std::uint8_t, 16>> const& wanted) override;
  int open(file_id const& id, int flags) const override;
  int sync(std::array<std::uint8_t, 16> const& fs) const override;
  mount_time mounting(std::array<std::uint8_t, 16> const& fs) const override;
  std::string place_of(std::array<std::uint8_t, 16> const& fs, int fd) const override;
  bool is_marked(int fd, std::string const& mark) const override;
  int set_mark(int fd, std::string const& mark, hands& by) const override;

  /// That directory of open(), opened to be read by its name, with the rights that this thread has
  /// now: -1 where they do not do. Nothing that is mounted over it, or a link, is entered.
  int open_by_name(std::array<std::uint8_t, 16> const& fs, int directory) const;

 private:
  struct mounted {
    int fd;
    mount_row at;
    bool is_unique;
  };
  bool look_at(mount_row const& m);
  void let_go();
  mounted const* of(std::array<std::uint8_t, 16> const& fs) const;
  std::vector<mount_row> all_;
  std::map<std::array<std::uint8_t, 16>, mounted> mounted_;
};

/// Its ctime, and its mtime.
std::uint64_t changed_ns(struct stat const& st);
std::uint64_t modified_ns(struct stat const& st);

std::uint64_t ns_of(statx_timestamp const& t);

/// As files have it.
std::uint64_t realtime_ns();
/// The same by ticks, as files that nobody looks at are dated: none is from now on dated earlier.
std::uint64_t coarse_ns();

/// For people, of a file that has no name for them.
std::string nameless(std::array<std::uint8_t, 16> const& fs, int fd);

std::string uuid_text(std::array<std::uint8_t, 16> const& fs);

}  // namespace sluice::journal
