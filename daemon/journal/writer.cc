// SPDX-License-Identifier: Apache-2.0
#include "journal/writer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "journal/slots.h"

namespace sluice::journal {

namespace {

std::uint64_t payload_bytes_of(record const& r) {
  std::vector<std::byte> head;
  encode_head(r, head);
  return head.size() + data_of(r).size();
}

}  // namespace

writer::writer(disk& d, superblock const& s, surroundings around, rules const& keep)
    : disk_(d),
      keep_(keep),
      around_(std::move(around)),
      super_(s),
      tail_(s, keep),
      durable_(s.head) {}

int writer::try_append(record const& r, std::uint64_t& lsn, std::uint64_t spared_bytes) {
  std::uint64_t const payload = payload_bytes_of(r);
  if (payload > payload_bytes_max || r.bytes.size() > data_bytes_max) return EFBIG;
  lock held(mutex_);
  if (failed_ != 0) return failed_;
  if (!tail_.has_room(payload + spared_bytes)) return ENOSPC;
  lsn = tail_.append(r, around_.wall_ns());
  return 0;
}

int writer::commit(std::uint64_t lsn) {
  lock held(mutex_);
  lsn = std::min(lsn, tail_.next());
  while (durable_ < lsn && failed_ == 0) {
    if (writing_) {
      changed_.wait(held);
      continue;
    }
    writing_ = true;
    write_open(held);
    writing_ = false;
    changed_.notify_all();
  }
  // What was durable before the failure stays so.
  return durable_ >= lsn ? 0 : failed_;
}

void writer::write_open(lock& held) {
  batch b = tail_.seal(around_.wall_ns(), std::exchange(spare_, {}));
  std::uint64_t const area_bytes = tail_.area_bytes();
  held.unlock();
  std::uint64_t const begin = around_.monotonic_ns();
  int failed = write_ring(b, area_bytes);
  if (failed == 0 && !disk_.has_name()) failed = ENOENT;
  std::uint64_t const took = around_.monotonic_ns() - begin;
  held.lock();
  if (failed == 0) {
    ++batches_.count;
    batches_.bytes += b.bytes.size();
    batches_.took_ns += took;
    durable_ = b.end;
    spare_ = std::move(b.bytes);
  } else {
    failed_ = failed;
  }
}

int writer::write_ring(batch const& b, std::uint64_t area_bytes) {
  std::span<std::byte const> const all(b.bytes);
  std::uint64_t const place = b.begin % area_bytes;
  std::uint64_t const first = std::min<std::uint64_t>(all.size(), area_bytes - place);
  auto const put = [&](std::uint64_t at, std::span<std::byte const> part) {
    return keep_.flush_before_ack ? disk_.write_through(area_begin + at, part)
                                  : disk_.write(area_begin + at, part);
  };
  int failed = put(place, all.first(first));
  if (failed == 0 && first < all.size()) failed = put(0, all.subspan(first));
  return failed;
}

int writer::checkpoint(std::uint64_t up_to, std::function<int()> const& sync_home) {
  lock held(mutex_);
  while (checkpointing_) changed_.wait(held);
  if (failed_ != 0) return failed_;
  if (home_error_ != 0) return home_error_;
  auto const to = tail_.mark_below(std::min(up_to, durable_));
  if (to.lsn == tail_.head()) return 0;
  checkpointing_ = true;
  held.unlock();
  // All records below `to` were appended after their home files changed.
  int const error = keep_.home_before_trim ? sync_home() : 0;
  held.lock();
  if (home_error_ == 0) home_error_ = error;
  superblock next = super_;
  if (home_error_ == 0) {
    next.head = to.lsn;
    next.head_seed = to.seed;
  }
  int failed = write_super(held, next);
  if (failed == 0 && !keep_.home_before_trim) failed = sync_home();
  if (failed == 0) failed = home_error_;
  if (failed == 0) tail_.trimmed(to);
  checkpointing_ = false;
  changed_.notify_all();
  return failed;
}

/// With what is known of home by now. `checkpointing_` is set: nobody else writes one.
int writer::write_super(lock& held, superblock next) {
  next.home_error = static_cast<std::uint64_t>(home_error_);
  held.unlock();
  int const failed = write_slot(disk_, next, keep_);
  held.lock();
  if (failed == 0) super_ = next;
  return failed;
}

void writer::home_failed(int error) {
  lock held(mutex_);
  if (home_error_ == 0) home_error_ = error;
  while (checkpointing_) changed_.wait(held);
  if (failed_ != 0 || super_.home_error != 0) return;
  checkpointing_ = true;
  write_super(held, super_);
  checkpointing_ = false;
  changed_.notify_all();
}

void writer::look() {
  lock const held(mutex_);
  if (failed_ == 0 && !disk_.has_name()) failed_ = ENOENT;
}

std::uint64_t writer::durable() const {
  lock const held(mutex_);
  return durable_;
}

std::uint64_t writer::head() const {
  lock const held(mutex_);
  return tail_.head();
}

std::uint64_t writer::tail() const {
  lock const held(mutex_);
  return tail_.next();
}

std::uint64_t writer::next_record() const {
  lock const held(mutex_);
  return tail_.next_record();
}

int writer::failed() const {
  lock const held(mutex_);
  return failed_;
}

int writer::home_error() const {
  lock const held(mutex_);
  return home_error_;
}

written_batches writer::batches() const {
  lock const held(mutex_);
  return batches_;
}

std::uint64_t writer::in_use() const {
  lock const held(mutex_);
  return tail_.in_use();
}

std::uint64_t writer::room() const {
  lock const held(mutex_);
  return tail_.area_bytes();
}

bool writer::wants_checkpoint() const {
  lock const held(mutex_);
  return durable_ - tail_.head() > tail_.area_bytes() / 3;
}

int continue_log(disk& d, superblock& s, std::uint64_t end, std::uint64_t salt, rules const& keep,
                 std::span<std::uint8_t const> boot) {
  superblock next = s;
  // The scan ends after a whole record, which a torn batch may leave inside a block.
  next.head = round_up(end, block_bytes);
  if (keep.generation_moves) {
    ++next.generation;
    next.salt = salt;
  }
  next.head_seed = next.salt;
  next.ours = {};
  next.home_error = 0;
  std::fill(std::begin(next.boot), std::end(next.boot), std::uint8_t{0});
  std::copy(boot.begin(), boot.end(), std::begin(next.boot));
  int const failed = write_slot(d, next, keep);
  if (failed == 0) s = next;
  return failed;
}

}  // namespace sluice::journal
