// SPDX-License-Identifier: Apache-2.0
// Whether a file system has a journal in which what was done to a file, and to its names, lies in
// order. Only there does the journal of durable fsync take files: ext4 and xfs.
#pragma once

namespace sluice {

enum class fs_journal {
  none,     // or nobody knows
  of_file,  // fsync of a file commits what was done to its names, wherever: xfs
  of_all,   // and fsync of a directory all that was done before: ext4 (since Linux 6.4)
};

fs_journal fs_journal_of(int fd);

}  // namespace sluice
