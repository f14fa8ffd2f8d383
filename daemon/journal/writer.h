// SPDX-License-Identifier: Apache-2.0
// Problem: each fsync pays for a flush, and a flush costs the same for one record as for hundreds.
// Idea: a caller that needs its records durable and finds nobody writing writes everything that is
// open, its own records and all others. Callers that come meanwhile wait for the next write. The
// writer has no thread of its own; in the daemon the threads of commits.h are its callers.
// What stays true: commit() returns 0 only after a flush that covers the record; records are freed
// only when the home files were synced after them and the superblock says so; after the first
// failed write or flush every waiter and every later caller gets its errno, for good; so does every
// caller that wants records freed after the first failed sync of home.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "journal/disk.h"
#include "journal/tail.h"

namespace sluice::journal {

struct surroundings {
  std::function<std::uint64_t()> wall_ns;       // for records
  std::function<std::uint64_t()> monotonic_ns;  // how long a flush takes
};

/// What was written since the start.
struct written_batches {
  std::uint64_t count = 0, bytes = 0, took_ns = 0;
};

class writer {
 public:
  /// `s` is in force on `d`, and nothing after its head counts: see continue_log().
  writer(disk& d, superblock const& s, surroundings around, rules const& keep = {});

  /// The home file was changed already. 0 and `lsn`, or an errno: then fsync must be the file's
  /// own. ENOSPC: there is no room now. `spared`: what must be left then.
  int try_append(record const& r, std::uint64_t& lsn, std::uint64_t spared_bytes = 0);
  /// Returns when the journal is durable up to `lsn`: 0, or the errno of the journal's first
  /// failure.
  int commit(std::uint64_t lsn);
  /// Frees what was durable before and lies before `up_to`: `sync_home` makes its home files safe.
  /// On an error nothing is freed, now or ever: the journal says of itself that home lost
  /// something, and the next recovery replays it.
  int checkpoint(std::uint64_t up_to, std::function<int()> const& sync_home);
  /// Somebody else met that error at home.
  void home_failed(int error);
  /// Fails with ENOENT when the journal can no longer be found after a crash.
  void look();

  std::uint64_t durable() const;
  std::uint64_t head() const;
  std::uint64_t tail() const;
  std::uint64_t next_record() const;
  int failed() const;
  /// Nonzero: what was met at home, by a checkpoint or by somebody else.
  int home_error() const;
  written_batches batches() const;
  /// A third of the ring is in use: time for somebody to checkpoint.
  bool wants_checkpoint() const;
  std::uint64_t in_use() const;
  std::uint64_t room() const;

 private:
  using lock = std::unique_lock<std::mutex>;
  void write_open(lock& held);
  int write_super(lock& held, superblock next);
  int write_ring(batch const& b, std::uint64_t area_bytes);

  disk& disk_;
  rules const keep_;
  surroundings const around_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  superblock super_;
  log_tail tail_;
  block_buffer spare_;
  std::uint64_t durable_;
  written_batches batches_;
  int failed_ = 0;      // sticky
  int home_error_ = 0;  // sticky as well
  bool writing_ = false;
  bool checkpointing_ = false;
};

/// The first thing to do with a journal that was scanned and replayed (or found empty): a new
/// generation begins at `end`, and what lies after can never count again.
int continue_log(disk& d, superblock& s, std::uint64_t end, std::uint64_t salt,
                 rules const& keep = {}, std::span<std::uint8_t const> boot = {});

}  // namespace sluice::journal
