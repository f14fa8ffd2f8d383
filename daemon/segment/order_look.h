// SPDX-License-Identifier: Apache-2.0
// Durable fsync as seen from outside: a job's order area and the status of the journal's daemon,
// each read once as it is. Both belong to others: an impossible value is an error or counts as
// nothing, and figures are only shown.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "abi/order_area.h"

namespace sluice::segment {

/// A file of which something was noted.
struct order_file {
  std::uint64_t device = 0;  // major << 32 | minor
  std::uint64_t inode = 0;
  std::uint64_t noted_bytes = 0;  // whole pages, written since somebody last asked
  bool is_noted = false;          // that, a new size, or a new file
  bool is_all_noted = false;      // which pages is not known
  bool is_asked = false;          // and not answered yet
  bool is_logged = false;         // the journal may have something of it that home has not
  bool is_native = false;         // the program syncs it itself
};

struct order_job {
  uid_t uid = 0;
  bool is_served = false;  // a journal daemon says so, and its heart beats
  std::uint64_t generation = 0;
  std::vector<order_file> files;
  std::uint64_t requests = 0;        // asked and not answered
  std::uint64_t asked_since_ns = 0;  // of the oldest of them; 0: there is none
  std::array<std::uint64_t, static_cast<unsigned>(abi::order_count::count)> counts = {};
  std::uint64_t logged = 0, synced = 0;  // as order_said
  /// Of barriers without an answer, by what their stream is: process, job, thread, path; and
  /// which of them the targets have.
  std::array<std::uint64_t, 4> barriers = {};
  std::array<bool, 4> has_stream = {};
  bool is_blind = false;
  bool is_void = false;
  int refused = 0;  // errno: a disk refused what the journal has
};

struct journal_status {
  std::string path;
  std::uint32_t pid = 0;
  bool is_alive = false;        // its heart beats
  bool only_syncs = false;      // its recovery writes no file
  bool is_refused = false;      // that could not be: what it has is not in the files
  std::uint64_t kept_logs = 0;  // with what it had of files that were left as they are
  std::uint64_t heart_ns = 0, generation = 0, room_bytes = 0, used_bytes = 0;
  std::uint64_t batches = 0, batch_bytes = 0, batch_ns = 0;
  std::uint64_t asked = 0, logged = 0, synced = 0;
  std::uint64_t files_live = 0, checkpoints = 0, voids = 0, areas = 0;
  int log_error = 0, home_error = 0;
};

/// None where there is no such file, or it is not ours to read. Throws when it is no area of ours.
std::optional<order_job> look_at_order(std::string const& area_path);
std::optional<journal_status> look_at_journal(std::string const& status_path);

/// The status of the daemon that serves one job alone, by its folder, and of one that serves a user
/// of a run directory.
std::string journal_status_path(std::string const& folder);
std::string journal_status_path(std::string const& run_dir, uid_t user);

}  // namespace sluice::segment
