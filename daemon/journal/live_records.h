// SPDX-License-Identifier: Apache-2.0
// Which records of a log still count for each file, before any of them is written. If a file was
// made durable at home (a large write, a drain before somebody bypasses the log), older records of
// its content must not overwrite it.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "journal/record.h"

namespace sluice::journal {

struct file_records {
  std::uint64_t safe_below = 0;  // LSN: content recorded before is at home
  bool is_kept = false;          // somebody else changed it, and it shall stay so
  bool is_live = false;          // its handle found it at home before anything was written
  bool is_marked = false;        // its last fsync was its own: newer than all of the log
  bool has_content = false;      // a record about its bytes or size counts
  bool has_size = false;         // the last of the records that a new file begins with
  std::uint64_t changed_ns = 0;  // ctime of home after the last record of content
};

class live_records {
 public:
  void add(std::uint64_t lsn, record const& r);
  /// After the last add.
  void close();

  bool counts(std::uint64_t lsn, record const& r) const;
  bool is_live(file_id const& id) const;

  /// Those that records are about, and the directories and victims that they mention.
  std::map<file_id, file_records>& files() { return files_; }
  std::set<std::array<std::uint8_t, 16>> const& file_systems() const { return file_systems_; }

 private:
  std::map<file_id, file_records> files_;
  std::map<file_id, std::uint64_t> content_;  // LSN of the last record about content
  std::set<std::array<std::uint8_t, 16>> file_systems_;
};

}  // namespace sluice::journal
