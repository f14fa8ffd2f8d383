// SPDX-License-Identifier: Apache-2.0
// Which records of a journal still count for each file, before any of them is written. If a file
// was made durable at home (a sync of its own, a drain before somebody bypasses the journal), older
// records of its content must not overwrite it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "journal/record.h"

namespace sluice::journal {

struct owner_ids {
  std::uint32_t uid = 0, gid = 0;
  bool operator==(owner_ids const&) const = default;
};

struct file_records {
  std::uint64_t safe_below = 0;  // LSN: content recorded before is at home
  bool is_kept = false;          // it shall stay as it is: somebody else changed it, say
  bool is_changed = false;       // removed by the journal, and changed after the crash
  bool is_directory = false;     // others have their names in it
  bool is_live = false;          // its handle found it at home before anything was written
  bool is_marked = false;        // its last fsync was its own: newer than all of the journal
  bool has_content = false;      // a record about its bytes or size counts
  bool is_removed = false;       // it had no name any more
  bool has_size = false;         // the last of the records that a new file begins with
  std::uint64_t changed_ns = 0;  // ctime of home after the last record of content
  std::uint64_t made_ns =
      0;  // the same after the first, of one that the journal made; 0: it did not
  std::optional<owner_ids> owner;  // whose it was; none: an older journal does not say
};

/// It was given to somebody else after the journal had it. What home lacks of a file that the
/// journal made may be its owner as well: that is not later than the first record.
bool is_given_away(file_records const& f, struct stat const& home);

class live_records {
 public:
  void add(std::uint64_t lsn, record const& r);
  /// After the last add.
  void close();

  bool counts(std::uint64_t lsn, record const& r) const;
  bool is_live(file_id const& id) const;
  /// A part of a file that we made, and that is not live, was left at that time (replay.h).
  bool has_left_at(std::uint64_t changed_ns) const;
  /// Null: no record is about it.
  file_records const* of(file_id const& id) const;

  /// Those that records are about, and the directories that they mention.
  std::map<file_id, file_records>& files() { return files_; }
  std::set<std::array<std::uint8_t, 16>> const& file_systems() const { return file_systems_; }

 private:
  std::map<file_id, file_records> files_;
  std::map<file_id, std::uint64_t> content_, made_;  // LSN of the last such record
  std::set<std::array<std::uint8_t, 16>> file_systems_;
};

}  // namespace sluice::journal
