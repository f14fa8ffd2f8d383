// SPDX-License-Identifier: Apache-2.0
// Records applied to home files. The home may be behind the journal or, in parts, ahead of it, and
// an earlier recovery may have been cut off: each record is compared by identity with what is
// there, so that doing all of them again changes nothing.
// What stays true: nothing is written to a file unless it is certainly the record's. If a later
// file has the name by now, it keeps it: home is ahead of the journal there. If an earlier file
// still has it, home is older than the journal: its removal or its move was not durable. That file
// is put aside and not removed, because nobody knows which of the two it was. Files that an earlier
// attempt of the same recovery made bear its mark and are made again.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "journal/hands.h"
#include "journal/home.h"
#include "journal/live_records.h"
#include "journal/own_times.h"
#include "journal/page_set.h"

namespace sluice::journal {

struct replayed {
  std::uint64_t records = 0;            // applied or found done
  std::uint64_t bytes = 0;              // of data
  std::uint64_t made = 0;               // files that the crash had lost
  std::uint64_t gone = 0;               // records of files that are no more
  std::uint64_t ahead = 0;              // names that home has given to later files
  std::vector<std::string> aside;       // where earlier files are whose names were given again
  std::vector<std::string> kept_names;  // that were not changed, and why
  std::vector<std::string> regrouped;   // that could not be given to their group
};

/// The crash was before `until_ns`, as the journal knows it. A file that was changed later was so
/// by an earlier attempt, by the present one, or by somebody else.
struct crash_time {
  std::uint64_t until_ns = 0;
  own_times earlier = {};
  std::uint64_t begun_ns = ~std::uint64_t{0};

  bool is_foreign(std::uint64_t changed_ns) const {
    return changed_ns > until_ns && !earlier.contain(changed_ns);
  }
  bool is_ours(std::uint64_t changed_ns) const {
    return changed_ns >= begun_ns || earlier.contain(changed_ns);
  }
};

/// Somebody else changed that file after the crash.
bool is_changed_since(crash_time const& when, home const& at,
                      std::array<std::uint8_t, 16> const& fs, struct stat const& st);

/// A file that stays as it is, for what its users did to it: the journal keeps what it has of it.
struct left_aside {
  std::string why;
  bool is_lost = false;          // home has no such file: its names are kept as well
  std::string name;              // of a lost one; else home knows it
  std::uint64_t changed_ns = 0;  // the ctime of it or of a part, if that is ours by now; else 0
};

/// is_given_away(), as people are told.
inline constexpr char const* given_away_text = "it belongs to somebody else since";

/// An errno of opening or writing one file that its users can bring about as they like: a lease, a
/// program that runs, a seal, a quota. Null: it is none of those; else a sentence.
char const* users_doing(int error);

/// The same of a name in a directory, which another user may own.
char const* users_doing_there(int error);

/// Did it have its name before a file that began at `born_ns`, and which had it in turn? A change
/// of its name sets its ctime; what a mount or a recovery set after the crash says nothing.
bool is_earlier(struct statx const& there, std::uint64_t born_ns, std::uint64_t crash_ns);

class replay {
 public:
  /// `by` changes the files. `mark` (text) says which recovery made one.
  replay(home const& at, hands& by, live_records const& p, std::string mark, crash_time const& when)
      : home_(at), hands_(by), live_(p), mark_(std::move(mark)), when_(when) {}
  ~replay();
  replay(replay const&) = delete;
  replay& operator=(replay const&) = delete;

  /// What its users did to a file is an error, too, unless this is said: then it is left aside.
  void leave_aside_what_users_did() { leaves_aside_ = true; }
  /// A file that an attempt made, and that somebody else changed since, gets another name.
  void overwrite() { overwrites_ = true; }
  /// Where files go whose directory is no more; the descriptor stays the caller's. What an earlier
  /// attempt left there goes where its name is needed.
  void bring_homeless_to(int directory) { into_ = directory; }
  /// Those, besides others that were known before.
  std::map<file_id, left_aside> const& aside() const { return aside_; }
  /// Throws sluice::error, naming the file.
  void apply(std::uint64_t lsn, record const& r);
  /// What was written goes to the file systems' disks; 0, or an errno of any of it.
  int flush();
  /// Behind a flush that failed: a file of which the kernel has pages from before an error of its
  /// disk (stale_pages.h); empty: none.
  std::string const& stale() const { return stale_; }
  replayed const& done() const { return done_; }
  /// The marks go, once the journal is trimmed.
  void forget_marks();

 private:
  file_id const* name_now(file_id const& id) const;
  int open_file(file_id const& id, int flags = O_RDWR);
  int open_directory(file_id const& id);
  int remember(file_id const& id, int fd);
  void forget(file_id const& id);
  void flush(file_id const& id, int fd);
  bool leave_aside(file_id const& id, int fd, char const* why);
  bool leave_lost(record const& r, char const* why);
  void leave_name(record const& r, int fd, int error);
  int give(record const& r, int fd, mode_t mode);
  bool is_anothers(record const& r, struct stat const& st) const;
  int drop_privilege(int fd, struct stat const& st) const;
  void bring_owner(record const& r, int fd);
  void put(record const& r, int fd);
  int change_bytes(record const& r, int fd, struct stat const& st);
  void remove(record const& r);
  int remove_name(record const& r, int fd);
  void make(record const& r);
  int make_file(record const& r, int directory, std::string& given);
  bool is_left_in_into(std::string const& name);
  int name_it(record const& r, int fd, int directory, std::string& given);
  int clear_name(record const& r, int directory);
  bool is_of_attempt(int fd, struct stat const& st) const;
  std::string place_of(std::array<std::uint8_t, 16> const& fs, int directory,
                       std::string const& name) const;
  std::string move_aside(int directory, std::string const& name, std::uint64_t inode) const;
  int look_for(int directory, std::string const& name, int fd) const;
  int refuse_name(record const& r, int directory);
  int put_aside(record const& r, int directory, int fd);
  int rename_aside(record const& r, int directory, std::uint64_t inode);
  void take_back(file_id const& id, left_aside& one);
  void look_who_changed(file_id const& id, struct stat const& st);
  void know_changed(file_id const& id, int fd);
  [[noreturn]] void fail(record const& r, int fd, int error) const;

  struct open_one {
    int fd;
    std::list<file_id>::iterator age;
  };
  struct made_one {
    file_id now;
    file_id directory;
    bool is_homeless;          // it is in `into_`
    std::string name, given;   // by the journal, and by us
    std::uint64_t changed_ns;  // ctime as we left it; 0: somebody else changed it
  };

  home const& home_;
  hands& hands_;
  live_records const& live_;
  std::string mark_;
  crash_time when_;
  replayed done_;
  std::map<file_id, open_one> open_;
  std::list<file_id> ages_;              // oldest first
  std::map<file_id, made_one> made_;     // by what the journal calls them
  std::map<file_id, page_set> written_;  // bytes, and not flushed
  std::map<file_id, left_aside> aside_;
  std::map<file_id, owner_ids> given_;  // whose a file is that its group could not have
  bool leaves_aside_ = false, overwrites_ = false;
  int into_ = -1;
  std::set<std::string> given_in_into_;
  int flush_error_ = 0;
  std::string stale_;
};

}  // namespace sluice::journal
