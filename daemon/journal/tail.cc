// SPDX-License-Identifier: Apache-2.0
#include "journal/tail.h"

#include <algorithm>
#include <cstring>

namespace sluice::journal {

log_tail::log_tail(superblock const& s, rules const& keep)
    : keep_(keep),
      generation_(s.generation),
      salt_(s.salt),
      area_bytes_(s.area_bytes),
      head_(s.head),
      next_(s.head),
      seed_(s.head_seed) {
  open_.begin = s.head;
  marks_.push_back({s.head, s.head_seed});
}

bool log_tail::has_room(std::uint64_t payload_bytes) const {
  std::uint64_t const end = round_up(next_record() + record_bytes(payload_bytes), block_bytes);
  return end <= head_ + area_bytes_;
}

void log_tail::put(kind what, std::uint64_t stream, std::uint64_t epoch, std::uint64_t now_ns,
                   std::span<std::byte const> bytes) {
  std::uint64_t const payload_bytes = head_part_.size() + bytes.size();
  std::uint64_t const whole = record_bytes(payload_bytes);
  std::size_t const at = open_.bytes.size();
  open_.bytes.resize(at + whole);
  std::byte* const begin = open_.bytes.data() + at;
  std::byte* const payload = begin + sizeof(record_header);
  std::memcpy(payload, head_part_.data(), head_part_.size());
  if (!bytes.empty()) std::memcpy(payload + head_part_.size(), bytes.data(), bytes.size());
  std::fill(payload + payload_bytes, begin + whole, std::byte{0});
  record_header header = {};
  header.magic = record_magic;
  header.kind = static_cast<std::uint16_t>(what);
  header.generation = generation_;
  header.lsn = next_;
  header.written_ns = now_ns;
  header.stream = stream;
  header.epoch = epoch;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.checksum =
      checksum_of(header, std::span(payload, payload_bytes), keep_.chain ? seed_ : salt_);
  std::memcpy(begin, &header, sizeof header);
  seed_ = header.checksum;
  next_ += whole;
}

std::uint64_t log_tail::append(record const& r, std::uint64_t now_ns) {
  if (!is_open()) {
    batch_head const head = {0, proof_of(generation_, next_, salt_)};
    head_part_.resize(sizeof head);
    std::memcpy(head_part_.data(), &head, sizeof head);
    put(kind::batch, 0, 0, now_ns);
  }
  head_part_.clear();
  encode_head(r, head_part_);
  put(r.what, r.stream, r.epoch, now_ns, data_of(r));
  return next_;
}

batch log_tail::seal(std::uint64_t now_ns, block_buffer spare) {
  if (std::uint64_t const over = next_ % block_bytes; over != 0) {
    head_part_.assign(block_bytes - over - sizeof(record_header), std::byte{0});
    put(kind::pad, 0, 0, now_ns);
  }
  open_.end = next_;
  marks_.push_back({next_, seed_});
  batch sealed = std::move(open_);
  spare.clear();
  open_ = batch{next_, next_, std::move(spare)};
  return sealed;
}

log_tail::mark log_tail::mark_below(std::uint64_t lsn) const {
  mark found = marks_.front();
  for (auto const& m : marks_) {
    if (m.lsn > lsn) break;
    found = m;
  }
  return found;
}

void log_tail::trimmed(mark to) {
  while (marks_.size() > 1 && marks_.front().lsn < to.lsn) marks_.pop_front();
  head_ = to.lsn;
}

}  // namespace sluice::journal
