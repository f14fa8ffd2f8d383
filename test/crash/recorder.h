// SPDX-License-Identifier: Apache-2.0
// Disks that remember: files in a FUSE file system of ours, behind loop devices, with real file
// systems on them. Each has flushes of its own: one may be for a log, or they are of several nodes.
// Every write, flush, mark and refusal is an entry in memory shared with the server process, so any
// state that a power cut could have left can be put together and mounted again: behind the same
// server, where a second cut shall follow, else with the loop device right on the image, which is
// much faster. A write counts as flushed when it arrived before the flush did. Beside the disks lie
// files for programs: `marks` takes "STREAM EPOCH", `refuse` "DISK KINDS AFTER COUNT", see refusal.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace sluice::crash {

struct entry {
  enum : std::uint32_t { write, flush, mark, refused } what;
  std::uint32_t stream;     // mark; else which disk
  std::uint64_t offset;     // write, refused; mark: epoch
  std::uint64_t bytes;      // write; they follow in the arena
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC
};

inline constexpr unsigned home_disk = 0, log_disk = 1, most_disks = 4;

/// What a disk answers with EIO: of these kinds, after so many that it does, the next `count`.
struct refusal {
  enum : std::uint32_t { reads = 1, writes = 2, flushes = 4 };
  std::uint32_t kinds = 0, after = 0, count = 0;
};

/// Shared by the server and the tool.
struct shared {
  pthread_mutex_t mutex;
  std::uint32_t disks;
  std::uint64_t begin[most_disks + 1];  // of each disk in the image, and the end
  std::uint64_t arena_bytes;
  std::uint64_t used;  // of the arena
  std::uint32_t entries;
  std::uint32_t overflow;  // the arena was too small: the run proves nothing
  refusal refuses[most_disks];
  std::uint32_t refused;  // so many
};

/// A disk to measure on: it remembers nothing, and takes its time. Flushes go one after the other.
struct disk_model {
  unsigned write_us = 0, flush_us = 0;
  bool is_on() const { return flush_us != 0; }
};

/// Whether what happens to a disk is remembered, and may be refused.
enum class memory { full, none };

class recorder {
 public:
  /// `dir`: an empty directory; so many bytes for each disk. Throws std::runtime_error.
  recorder(std::string const& dir, std::vector<std::uint64_t> const& bytes, disk_model model = {});
  ~recorder();
  recorder(recorder const&) = delete;

  void attach(unsigned which = home_disk, memory kept = memory::full);
  void detach();  // all
  /// File systems that were unmounted are gone; those of processes that were killed go later.
  void wait_until_unused() const;
  std::string const& device(unsigned which = home_disk) const { return device_[which]; }
  unsigned disks() const { return shared_->disks; }
  /// Where programs mark.
  std::string marks() const { return dir_ + "/marks"; }

  void refuse(unsigned which, refusal what);
  void accept();  // all again
  unsigned refused() const;

  /// What is on the disk now is where recording begins.
  void begin();
  void mark(std::uint32_t stream, std::uint64_t epoch);
  /// The entries since begin() are kept aside for power cuts.
  void end();

  std::size_t entries() const { return log_.size(); }
  entry const& at(std::size_t i) const { return *log_[i]; }
  bool was_written() const {
    return std::any_of(log_.begin(), log_.end(), [](auto* e) { return e->what == entry::write; });
  }
  /// All disks, one behind the other.
  int image_fd() const { return image_fd_; }

  /// The disk becomes what a power cut behind the first `count` entries may have left: of what was
  /// not flushed by chance some, or the units that are bits of `subset`.
  void cut(std::size_t count, std::uint64_t seed, int subset = by_chance);
  static constexpr int by_chance = -1;
  static constexpr int all = -2;  // a disk without a cache
  /// How many subsets there are when they are few enough to try each; else 1.
  int subsets(std::size_t count) const;
  /// And what a second one leaves, somewhere in what was written since cut()
  /// (by a recovery, say), with a full memory.
  void cut_again(std::uint64_t seed);

 private:
  std::vector<entry const*> list(std::uint64_t from) const;
  void put(entry const& e, std::size_t begin, std::size_t bytes);
  void apply(std::vector<entry const*> const& log, std::size_t count, std::mt19937_64& rng,
             int subset);
  std::vector<bool> pages() const;
  void restore();

  std::uint64_t image_bytes() const { return shared_->begin[shared_->disks]; }

  std::string dir_, device_[most_disks];
  disk_model model_;
  pid_t server_ = -1;
  shared* shared_ = nullptr;
  int image_fd_ = -1;  // of a memfd; what was never written is a hole
  std::byte* image_ = nullptr;
  std::byte* arena_ = nullptr;
  std::byte* base_ = nullptr;
  std::vector<bool> base_pages_;  // that are no holes in base
  std::vector<entry const*> log_;
  std::uint64_t recorded_ = 0;  // bytes of the arena that the run took
  std::size_t cut_count_ = 0;
  std::uint64_t cut_seed_ = 0;
  int cut_subset_ = by_chance;
  int loop_[most_disks] = {-1, -1, -1, -1};
};

}  // namespace sluice::crash
