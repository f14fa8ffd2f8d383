// SPDX-License-Identifier: Apache-2.0
// A journal in a file. Its blocks are written once when it is made: blocks that are only reserved
// would make each commit of ours wait for the journal of the file system. Writes are direct and go
// through to the medium where the file system can do that; elsewhere fdatasync follows each write.
// What stays true: one process has the journal open for writing; an existing file is never made a
// journal.
#pragma once

#include <memory>
#include <string>

#include "journal/disk.h"
#include "journal/format.h"

namespace sluice::journal {

class file_disk : public disk {
 public:
  /// To make one, `path` is its directory: it is empty, and has no name.
  enum class use { look, write, make };
  /// Throws sluice::error, also when another process has it open to write.
  file_disk(std::string const& path, use how);
  ~file_disk() override;
  file_disk(file_disk const&) = delete;
  file_disk& operator=(file_disk const&) = delete;

  std::uint64_t bytes() const override { return bytes_; }
  unsigned owner() const { return owner_; }
  int descriptor() const { return fd_; }
  /// It has the one that it was opened by: somebody may have moved it, and put another there.
  bool has_name() const override;
  /// Zeros from the beginning of a new file; 0 or an errno.
  int fill(std::uint64_t bytes);
  /// Gives a new file its name; 0 or an errno.
  int link_as(std::string const& path);
  int read(std::uint64_t offset, std::span<std::byte> to) override;
  int write(std::uint64_t offset, std::span<std::byte const> from) override;
  int flush() override;
  int write_through(std::uint64_t offset, std::span<std::byte const> from) override;

 private:
  void make_hidden(std::string const& directory);
  void let_go();

  std::string path_, hidden_;  // hidden_: a name that a new one has for so long
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
  unsigned owner_ = 0;
  std::uint64_t device_ = 0, inode_ = 0;
  bool is_unnamed_ = false;  // a new one, not linked yet
  bool through_ = true;      // RWF_DSYNC is known here
};

/// Throws where root believes no owner of what has that name: base/believed_place.h.
void believe_place(std::string const& path);

/// From now on a larger journal is not opened: whoever owns it made it as large as he liked.
void refuse_journals_above(std::uint64_t bytes);

/// A new journal of `bytes` in all, locked, which has no name before it is linked beside `path`.
/// Throws.
std::unique_ptr<file_disk> begin_log_file(std::string const& path, std::uint64_t bytes,
                                          std::uint64_t window_ns);

/// The same under its name: complete, or not at all. Throws when there is a file of that name.
void make_log_file(std::string const& path, std::uint64_t bytes, std::uint64_t window_ns);

/// The names in the directory of that file are safe. Throws.
void sync_directory_of(std::string const& path);

std::uint64_t random_salt();

}  // namespace sluice::journal
