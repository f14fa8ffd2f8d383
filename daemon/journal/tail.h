// SPDX-License-Identifier: Apache-2.0
// The place where records are appended: the open batch, the LSN and seed of the next record, and
// how much of the ring is in use. No disk, no clock, no lock: the writer brings those.
#pragma once

#include <cstdint>
#include <deque>

#include "journal/disk.h"
#include "journal/format.h"
#include "journal/record.h"

namespace sluice::journal {

/// Whole blocks for the ring at `begin`.
struct batch {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  block_buffer bytes;
};

class log_tail {
 public:
  /// An empty journal: what it held was replayed, and `s` is its superblock in force.
  explicit log_tail(superblock const& s, rules const& keep = {});

  std::uint64_t next() const { return next_; }
  std::uint64_t head() const { return head_; }
  std::uint64_t in_use() const { return next_ - head_; }
  std::uint64_t area_bytes() const { return area_bytes_; }
  bool is_open() const { return next_ != open_.begin; }
  /// Where the next record goes: a batch begins with its head.
  std::uint64_t next_record() const { return next_ + (is_open() ? 0 : batch_head_bytes); }

  /// With the block that its batch may have to be filled up to.
  bool has_room(std::uint64_t payload_bytes) const;

  /// There must be room. Returns the LSN after it: durable when the journal is durable up to there.
  std::uint64_t append(record const& r, std::uint64_t now_ns);

  /// Fills the last block and takes the open batch; `spare` becomes the next one's memory.
  batch seal(std::uint64_t now_ns, block_buffer spare);

  /// The last end of a batch at or below `lsn`, with the seed of what follows: a place to trim to.
  struct mark {
    std::uint64_t lsn;
    std::uint64_t seed;
  };
  mark mark_below(std::uint64_t lsn) const;
  void trimmed(mark to);

 private:
  /// The payload is `head_part_` and, after it, `bytes`.
  void put(kind what, std::uint64_t stream, std::uint64_t epoch, std::uint64_t now_ns,
           std::span<std::byte const> bytes = {});

  rules keep_;
  std::uint64_t generation_, salt_, area_bytes_;
  std::uint64_t head_, next_, seed_;
  batch open_;
  std::vector<std::byte> head_part_;
  std::deque<mark> marks_;
};

}  // namespace sluice::journal
