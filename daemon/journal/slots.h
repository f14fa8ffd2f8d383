// SPDX-License-Identifier: Apache-2.0
// The two superblocks of a journal: the one in force, and the next one, written beside it.
#pragma once

#include <string>

#include "journal/disk.h"
#include "journal/format.h"

namespace sluice::journal {

struct slots_found {
  enum { good, unreadable, empty, foreign, newer, damaged } what = empty;
  superblock in_force = {};
  int error = 0;       // unreadable: the errno
  std::string reason;  // a sentence for all but good
};

/// Only `good` may be written to, and only `empty` may be made a journal.
slots_found read_slots(disk& d);

/// Writes `s` as the next superblock, flushed. On an error the old one is still in force.
int write_slot(disk& d, superblock& s, rules const& keep = {});

/// Makes a journal of a disk: both slots. What was in the area does not matter, for its records
/// lack the salt.
int make_log(disk& d, superblock s);

}  // namespace sluice::journal
