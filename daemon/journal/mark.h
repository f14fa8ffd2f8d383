// SPDX-License-Identifier: Apache-2.0
// A program that got no answer from the daemon synced its file itself, and left a mark on it.
// Records of that file up to the mark's generation are older than the file, and do not count.
#pragma once

#include "journal/format.h"

namespace sluice::journal {

/// One of that journal, for its present generation, and made for this very file.
bool has_mark(int fd, superblock const& s);
/// `fd` is the journal: a program said of it that all it has is safe at home.
bool is_void(int fd, superblock const& s);

/// Any: 0, also when there was none, or an errno. It is gone for good after an fsync.
int remove_mark(int fd);

inline constexpr char access_list_name[] = "system.posix_acl_access";
/// What the names of its attributes say: one question for both.
struct names_seen {
  bool may_be_mark, may_be_list;
};
names_seen names_of(int fd);

/// Whether the file has marks cannot be told: an errno, else 0.
int unreadable_marks(int fd);

}  // namespace sluice::journal
