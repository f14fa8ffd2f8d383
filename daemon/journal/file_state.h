// SPDX-License-Identifier: Apache-2.0
// Decides about one fsync: logged, made durable at home, or left to the program. Pure: all that is
// known of the file is an argument, so the table of cases is tested without a disk.
// What stays true: the journal is chosen only when every byte that differs from what is durable is
// known; in doubt home is synced. A file that is sent away (`pass`) has nothing live in the
// journal.
#pragma once

#include <cstdint>

namespace sluice::journal {

inline constexpr std::uint64_t logged_bytes_max = 256 << 10;  // more is synced, not written twice
/// The kernel looks at each page that it has of a file to say which are dirty: 13 to 25 ns.
inline constexpr std::uint64_t looked_pages_max = (64 << 20) / 4096;
/// For so long the program syncs a file by itself of which it is not asked who wrote it.
inline constexpr std::uint64_t own_ns = 20'000'000'000;

struct file_seen {
  bool is_identified = false;  // its file system tells a uuid and handles
  bool has_failed = false;     // its disk refused some of it, and told us, not the programs
  bool is_live = false;        // records of it count
  bool has_baseline = false;   // home was durable once, and all written since was noted
  bool is_created = false;     // made since, by a program that notes what it writes
  bool is_bypassed = false;    // written where nobody notes it
  bool is_native = false;      // a program did not wait for us
  bool is_whole = false;       // it is not known which pages were written
  bool is_foreign = false;     // written by somebody who notes nothing
  bool is_unseen = false;      // whether that is so is not asked: too often, or of too many pages
  bool has_new_metadata = false;  // mode, owner, links, name or attributes changed since
  bool is_linked_once = true;
  bool is_ending = false;     // we go
  bool has_changed = false;   // bytes or size
  bool is_overwrite = false;  // only bytes that were there
  bool is_alone = false;      // nobody else waits
  std::uint64_t size = 0;
  std::uint64_t dirty_bytes = 0;  // of the noted pages
};

enum class way {
  pass,       // the program's own fsync; nothing was taken
  native,     // ours, at home; what is live of it is revoked after it
  alone,      // the same; the next is the program's own while nobody else syncs
  own,        // the same; the next is the program's own
  nothing,    // all was logged before: its last record has to be durable
  pages,      // the noted pages, and the size
  all,        // every byte
  first_all,  // the same, with its name
};

way choose(file_seen const& f);

/// That a ctime is as it was says that nothing was changed since. `looked_ns`: the coarse clock,
/// which dates changes, just before the ctime was asked for. In the same tick of it a later change
/// leaves the same ctime, unless the file system has times that are finer for those who ask.
constexpr bool ctime_proves(std::uint64_t changed_ns, std::uint64_t looked_ns,
                            bool has_fine_times) {
  return has_fine_times || looked_ns > changed_ns;
}

/// Whether the programs of a directory sync it after each new file, or each few. Then the journal
/// saves nothing for the file: what the directory waits for makes it durable as well.
class directory_habit {
 public:
  bool is_synced_anyway() const { return synced_ != 0 && created_ <= 4 * synced_; }
  /// Often enough that they need not ask any more.
  bool is_sure() const { return is_synced_anyway() && synced_ >= 4; }
  void created();
  /// It counts for one file.
  void synced();

 private:
  void count(unsigned& what);

  unsigned created_ = 0, synced_ = 0;  // of late
  unsigned unsynced_ = 0;              // created, and no sync counted for it
};

}  // namespace sluice::journal
