// SPDX-License-Identifier: Apache-2.0
// The window over the ring is read in large steps; a record is looked at when all of it is there.
#include "journal/scan.h"

#include <algorithm>
#include <cstring>

#include "journal/record.h"

namespace sluice::journal {

namespace {

constexpr std::uint64_t step_bytes = 4u << 20;

/// Bytes [begin, end) of the ring in memory, by LSN.
class window {
 public:
  window(disk& d, superblock const& s) : disk_(d), s_(s), begin_(s.head), end_(s.head) {}

  /// Makes [lsn, lsn + bytes) readable. Nothing when the ring ends before, or on an error.
  std::byte const* at(std::uint64_t lsn, std::uint64_t bytes) {
    std::uint64_t const limit = s_.head + s_.area_bytes;
    if (bytes > limit - lsn) return nullptr;
    while (lsn + bytes > end_) {
      if (!more(lsn, limit)) return nullptr;
    }
    return held_.data() + (lsn - begin_);
  }
  int error() const { return error_; }

 private:
  bool more(std::uint64_t lsn, std::uint64_t limit) {
    std::uint64_t const keep_from = lsn / block_bytes * block_bytes;
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(keep_from - begin_));
    begin_ = keep_from;
    std::uint64_t const place = end_ % s_.area_bytes;
    std::uint64_t const bytes = std::min({step_bytes, limit - end_, s_.area_bytes - place});
    std::size_t const had = held_.size();
    into_.resize(bytes);
    error_ = disk_.read(area_begin + place, into_);
    if (error_ != 0) return false;
    held_.resize(had + bytes);
    std::memcpy(held_.data() + had, into_.data(), bytes);
    end_ += bytes;
    return true;
  }

  disk& disk_;
  superblock const& s_;
  std::uint64_t begin_, end_;
  std::vector<std::byte> held_;
  block_buffer into_;
  int error_ = 0;
};

/// The first batch after `end`, or 0. The record at `end` itself may be of a torn batch.
std::uint64_t later_batch(disk& d, superblock const& s, std::uint64_t end, int& error) {
  block_buffer step;
  std::uint64_t const limit = s.head + s.area_bytes;
  for (std::uint64_t lsn = end / block_bytes * block_bytes + block_bytes; lsn < limit;) {
    std::uint64_t const place = lsn % s.area_bytes;
    step.resize(std::min({step_bytes, limit - lsn, s.area_bytes - place}));
    error = d.read(area_begin + place, step);
    if (error != 0) return 0;
    for (std::uint64_t at = 0; at < step.size(); at += block_bytes, lsn += block_bytes) {
      record_header h;
      batch_head head;
      std::memcpy(&h, step.data() + at, sizeof h);
      std::memcpy(&head, step.data() + at + sizeof h, sizeof head);
      if (is_sound(h) && h.kind == static_cast<std::uint16_t>(kind::batch) &&
          h.generation == s.generation && h.lsn == lsn && h.payload_bytes == sizeof head &&
          head.proof == proof_of(s.generation, lsn, s.salt))
        return lsn;
    }
  }
  return 0;
}

}  // namespace

scanned scan(disk& d, superblock const& s, visitor const& visit, rules const& keep) {
  scanned result;
  result.end = s.head;
  result.seed = s.head_seed;
  window ring(d, s);
  for (;;) {
    std::byte const* at = ring.at(result.end, sizeof(record_header));
    record_header header;
    if (at == nullptr) break;
    std::memcpy(&header, at, sizeof header);
    if (!is_sound(header) || header.generation != s.generation) break;
    if (keep.lsn_checked && header.lsn != result.end) break;
    std::uint64_t const whole = record_bytes(header.payload_bytes);
    at = ring.at(result.end, whole);
    if (at == nullptr) break;
    std::span<std::byte const> const payload(at + sizeof header, header.payload_bytes);
    if (header.checksum != checksum_of(header, payload, keep.chain ? result.seed : s.salt)) break;
    result.end += whole;
    result.seed = header.checksum;
    ++result.records;
    result.written_ns_max = std::max(result.written_ns_max, header.written_ns);
    if (!visit(header, payload)) return result;
  }
  result.error = ring.error();
  if (result.error == 0) result.damaged_before = later_batch(d, s, result.end, result.error);
  return result;
}

}  // namespace sluice::journal
