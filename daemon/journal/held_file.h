// SPDX-License-Identifier: Apache-2.0
// A file or directory of which the daemon knows something. The daemon holds it open, so that its
// number means no other file meanwhile. The descriptor is opened anew and never the program's own,
// because that one carries the program's locks. No more than one is opened of each file.
#pragma once

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/fs_journal.h"
#include "journal/area.h"
#include "journal/file_state.h"
#include "journal/home.h"
#include "journal/mount_points.h"
#include "journal/record.h"

namespace sluice::journal {

using file_key = std::pair<std::uint64_t, std::uint64_t>;  // device, inode

/// What is known of files and of directories.
struct held_inode {
  descriptor fd;
  file_id id;
  file_key key;
  bool is_marked = false;                // by a program of a job that is no more
  std::uint64_t last_lsn = 0;            // of its records that count, or of names in it; 0: none
  mutable std::vector<place> places;     // in all areas, see service::places_of
  mutable std::uint64_t places_are = 0;  // of that version of the areas
};

struct held_directory : held_inode {
  bool is_durable = false;  // was synced since it is held
  directory_habit habit;
};

/// The name under which the journal knows a new file.
struct logged_name {
  std::shared_ptr<held_directory> in;
  std::string name;
  unsigned mode = 0;
};

struct held_file : held_inode {
  bool is_identified = false;
  bool has_baseline = false;
  bool is_shared = false;        // somebody seemed to write it and not to say so
  bool is_moved = false;         // since home was synced with its name
  bool is_busy = false;          // a sync of ours is under way
  std::deque<request> waiting;   // for its end
  std::uint64_t size = 0;        // as the journal or home durably has it
  std::uint64_t changed_ns = 0;  // ctime when that was looked at
  bool is_ctime_proof = false;   // a later change would have moved it: see ctime_proves()
  unsigned mode = 0, uid = 0, gid = 0;
  page_set explained;  // pages that may be dirty at home, and are in the journal
  page_set leaving;    // the same, and being written to the disk; those written since are above
  bool is_leaving = false;
  std::unique_ptr<logged_name> link;
  // The kernel tells an error of the disk once for each open file, and two threads may sync this.
  std::mutex syncing;
  int refused = 0;  // that it told while the journal had something of it: for whoever syncs it
  // It told us. When the journal has nothing of it programs ask by descriptors of their own from
  // then on, and each hears of what was refused.
  bool has_failed = false;
  std::uint64_t used_ns = 0;
  unsigned foreign_in_row = 0;
  std::uint64_t unseen_until_ns = 0;  // until then nobody looks who wrote its pages
};

/// It is on its disk, or only its bytes and size: 0 or an errno.
int sync_held_file(held_file& f, bool only_bytes, bool has_records);

/// A descriptor of the process that a request names. None of a process that is not the area's
/// user's: what stands in an area anybody of that user may have written, and we may take them all.
descriptor take_descriptor(request const& r);

/// What the program's descriptor is of, not opened (O_PATH): nothing when it is not that inode (any
/// more), or may not write it. `st`: what it is, whose, and how many names it has. No file system
/// is asked.
descriptor fetch(request const& r, bool is_directory, struct stat& st);
/// The same, opened.
descriptor open_fetched(int at, bool is_directory);

/// A change of a file whose times were asked for gives it later ones, in the same tick as well.
bool has_fine_times(int fd, struct stat const& st);

/// The directory of a file, if that can be found and nothing is mounted over it: the file itself
/// might be removed, and its blocks would stay.
descriptor open_beside(int fd, struct stat const& st);

/// A device that has a file in the journal.
struct held_mount {
  descriptor fd;
  descriptor asked_at;  // a file of ours there without a name, else the first that was held
  fs_journal kept_by = fs_journal::none;
  bool has_fine_times = false;
  std::array<std::uint8_t, 16> fs = {};
  mount_root root;     // where a directory of it was last looked for; the loop's
  std::mutex syncing;  // as of a file
  int refused = 0;

  /// What why_given_up() asks.
  int asked() const { return asked_at.get(); }
};

/// All of its file system is on its disk: 0 or an errno, for good.
int sync_held_mount(held_mount& m);

/// When the file began; 0: not known.
struct birth {
  std::uint64_t word = 0;  // as stages say it
  std::uint64_t ns = 0;    // CLOCK_REALTIME
};
birth birth_of(int fd);
/// As fstat, and when it began.
bool look_at(int fd, struct stat& st, birth& born);

inline constexpr std::uint64_t pages_max = std::uint64_t{1} << 50;
/// Of its pages before `end` those that are dirty and not in `but`: -1 when the kernel does not
/// say. `cached`: all that it has of those, dirty or not; it looks at each.
std::int64_t dirty_pages(int fd, page_ranges const& but, std::uint64_t end = pages_max,
                         std::uint64_t* cached = nullptr);

/// Of pages [first, end) those that are being written to the disk.
std::int64_t pages_under_way(int fd, std::uint64_t first, std::uint64_t end);

/// A page that is dirty shows all of its folio as dirty. Adds to `pages` what may be dirty for that
/// reason alone: dirty blocks around them of a folio's size and place, as long as they are few.
void add_folios(int fd, page_set& pages);

/// Its directory, and its name there; false when that cannot be told for sure.
bool find_name(int fd, struct stat const& st, std::string& directory, std::string& name);
/// The same of a path that the kernel told.
bool split_name(std::string const& path, std::string& directory, std::string& name);

}  // namespace sluice::journal
