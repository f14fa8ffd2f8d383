// SPDX-License-Identifier: Apache-2.0
// Where it is measured: a file without a name, so that nothing is left whatever ends us; where a
// file system has no such files, one in a directory of our own. Before anything is written it is
// made sure that there is room, and that a margin stays for others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/own_directory.h"
#include "commands/calibrate/plan.h"

namespace sluice::calibrate {

inline constexpr char const* directory_name = ".sluice-calibrate";
inline constexpr std::uint64_t least_file_bytes = 32 << 20;

/// How much may be written: a part of what is free. Pure.
struct room {
  std::uint64_t free_bytes = 0, all_bytes = 0;
  std::uint64_t wanted_bytes = 0;  // by the user; 0: as much as is useful
  bool is_short = false;
};
/// The size of the file; 0: there is no room for it. It and twice as much beside the margin fit.
std::uint64_t file_bytes_of(room const& r);
/// The bytes that stay free.
std::uint64_t margin_of(room const& r);

class ground {
 public:
  /// Throws a usage error that says what is wrong with `path`: not there, read-only, full. Nothing
  /// is written yet.
  ground(std::string const& path, std::uint64_t wanted_bytes, bool is_short);

  abilities const& can() const { return can_; }
  std::string const& path() const { return path_; }
  /// Writes the file; `go_on(bytes so far)` is asked between pieces, false ends it early.
  void fill(std::function<bool(std::uint64_t)> const& go_on);

  /// Whether the kernel counts, by thread, what it reads and writes there. The file is written.
  bool counts_device_work() const;

  /// The file, opened anew; -1 and errno.
  int open_file(bool direct) const;
  /// An empty file that nobody else sees; -1 and errno.
  int open_new(bool direct) const;
  /// How large the file of a thread may grow.
  std::uint64_t new_bytes(unsigned threads) const;
  /// Throws when others have used what was free.
  void check_room() const;

  /// Somebody who is told of each directory that is made here, so that it can be removed whatever
  /// happens; of one that is there already at once.
  using listener = std::function<void(std::string const& path, std::uint64_t inode)>;
  void on_directory(listener told);
  void announce(own_directory const& made) const;

 private:
  void look_at_direct();

  std::string path_;
  abilities can_;
  std::uint64_t margin_ = 0;
  std::optional<own_directory> home_;  // where there are no files without a name
  descriptor dir_;
  descriptor file_;
  listener told_;
};

}  // namespace sluice::calibrate
