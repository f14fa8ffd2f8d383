// SPDX-License-Identifier: Apache-2.0
// After a crash: every acknowledged change is brought home, then the journal begins a new
// generation.
// What stays true: nothing is written before all of the journal was read and every file looked at;
// the journal's records go only after a sync of all home file systems; on any error the journal
// stays as it was, to be recovered again. On a machine that has not been restarted since, home
// files are ahead of the journal: they are synced, and nothing is written over them. But if a disk
// refused bytes at home, the page cache shows other bytes than the disk has: then everything is
// replayed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "journal/replay.h"

namespace sluice::journal {

struct recover_options {
  std::string log;
  bool dry_run = false;
  bool keep_home = false;  // a file that somebody else changed stays as it is
  bool overwrite = false;  // such a file gets what the journal has of it all the same
  bool replay = false;     // although the machine runs since the journal was written
  bool partial = false;    // what lies before damage, without what lies after
  // Files whose users did something to them stay as they are, what the journal has of them is kept
  // in a journal of its own, and all others come home; else such a file is an error. Of a journal
  // of many users.
  bool set_aside = false;
  std::string into;             // a directory for files whose own one is no more; empty: none
  home* files = nullptr;        // who finds them; null: this process, by its own rights
  lock_patience patience = {};  // with locks that others hold
  int home_error = 0;           // home refused bytes, and nobody was there to say so in the journal
  std::function<void(std::uint64_t, std::uint64_t)> progress;  // bytes of so many
  std::function<void()> on_write = {};                         // from now on home files are changed
  std::function<bool()> is_to_end = {};                        // asked between records then
};

struct aside_file {
  std::string name, why;
};

struct recovered {
  std::uint64_t generation = 0;  // of the records
  std::uint64_t head = 0, end = 0;
  std::uint64_t records = 0;  // in the journal
  std::uint64_t files = 0;
  std::vector<std::string> foreign;  // changed by somebody else
  std::vector<aside_file> aside;     // left as they are
  std::string aside_log;             // what has the records of those
  std::uint64_t marked = 0;          // files that had an fsync of their own since
  std::uint64_t damaged_before = 0;  // scanned::damaged_before
  bool is_running = false;           // the machine runs since: home was synced, nothing replayed
  bool is_void = false;              // a program made all of it safe at home: nothing replayed
  int home_error = 0;                // with which home had refused bytes that the journal has
  replayed done;
};

/// Of a journal of this user: everything is done with this process's rights, and the kernel says
/// what they allow. Throws sluice::error. Files that somebody else changed, or has been given, are
/// an error without keep_home and without set_aside, unless it is a dry run; with `overwrite` only
/// those that have been given.
recovered recover(recover_options const& options);

}  // namespace sluice::journal
