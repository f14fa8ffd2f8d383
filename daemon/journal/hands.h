// SPDX-License-Identifier: Apache-2.0
// What a recovery does to home files and their names, in a process of its own.
// Whoever may read a file can hold its lock for as long as he likes (SECURITY.md, locks of a user's
// files), and who waits for that lock is not even ended by SIGKILL. So each of these calls may be
// given up: the process that makes it is left to itself, and another one takes its place.
// What stays true: that process has nothing of the journal open, and so keeps nobody from it. What
// is given up is told as `held`, and its file and directory are not touched again. It is killed
// while it waits, in a call that changes nothing: when that has the lock, the process ends. Who
// takes the lock in the moment after has one late change, and no more. So many of a person's
// processes wait at most (left_behind.h): what others may look at is not asked for beyond half of
// them, or who holds that would keep back his private files as well.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "journal/left_behind.h"
#include "journal/page_set.h"

namespace sluice::journal {

/// An errno: somebody holds the lock of a file, or of the directory that it is in.
inline constexpr int held = ETIME;
/// Another: so many locks of the user's are held that this one was not waited for.
inline constexpr int unasked = EUSERS;
inline bool is_out_of_reach(int error) { return error == held || error == unasked; }

/// How long a call that may wait for a lock is waited for. A busy disk takes its time as well.
struct lock_patience {
  std::int64_t first_ns = 30'000'000'000, next_ns = 10'000'000'000, last_ns = 1'000'000'000;
  std::int64_t least_ns = 100'000'000;  // for what leaves nobody behind, however many they are
  std::int64_t ends_ns = 100'000'000;   // how long one that was killed may take to end
  unsigned most_next = 8;               // so many are waited for as long
  // So many processes are left behind: by what others may look at, and by what they may not.
  unsigned most_shared = 64, most_private = 128;

  std::int64_t after(unsigned late) const {
    return late == 0 ? first_ns : late < most_next ? next_ns : last_ns;
  }
};

/// Has something come, or does it within so long? The end of the other side is something.
bool is_readable(int socket, std::int64_t most_ns);

/// Or cannot that be told?
bool may_others_look_at(int fd);

class hands {
 public:
  /// `left`: counts those of this user's hands.
  explicit hands(
      left_counter left = [](pid_t but) { return hands_left(geteuid(), but); },
      lock_patience const& patience = {})
      : patience_(patience), left_(std::move(left)) {}
  ~hands();
  hands(hands const&) = delete;
  hands& operator=(hands const&) = delete;

  // All return 0 or an errno, and throw sluice::error where there is no process to do it.
  int write(int file, std::uint64_t offset, std::span<std::byte const> bytes);
  int truncate(int file, std::uint64_t bytes);
  /// See stale_pages.h. It asks the file system, which takes the lock as well.
  int why_unwritten(int file, page_set const& bytes);
  int set_mode(int file, mode_t mode);
  int set_owner(int file, uid_t uid, gid_t gid);
  int remove_attribute(int file, std::string const& name);
  /// See home::set_mark().
  int set_mark(int file, std::string const& mark);
  /// A file without a name gets that one.
  int link(int file, int directory, std::string const& name);
  int unlink(int directory, std::string const& name);
  /// Nothing is replaced.
  int rename(int directory, std::string const& from, std::string const& to);
  /// What has that name, by O_PATH. See open_below().
  int look_up(int directory, std::string const& name, descriptor& found);

 private:
  struct order;
  struct answer;
  using act = int (*)(order const&, std::byte const* bytes, int file, int other, descriptor& found);
  using inode = std::pair<dev_t, ino_t>;

  int ask(act what, order asked, int file, int other = -1, descriptor* found = nullptr);
  int why_not(int file, int other);
  int hear(int file, int other, descriptor* found);
  bool is_held(int fd) const;
  void give_up(int file, int other);
  void begin();
  [[noreturn]] static void serve(int socket, std::byte const* bytes);

  lock_patience patience_;
  descriptor socket_;
  pid_t pid_ = 0;
  std::byte* bytes_ = nullptr;  // that both see
  std::set<inode> held_;
  left_behind left_;
  unsigned late_ = 0;
};

}  // namespace sluice::journal
