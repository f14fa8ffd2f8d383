// SPDX-License-Identifier: Apache-2.0
// A disk in memory with a volatile cache. A crash keeps any sectors of what was not flushed, in
// whole writes, in torn ones or a sector here and there; what was flushed is never lost.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "journal/disk.h"

namespace sluice::test {

using randomness = std::mt19937_64;

inline bool chance(randomness& rng, double p) {
  return std::uniform_real_distribution<>(0, 1)(rng) < p;
}

inline std::uint64_t below(randomness& rng, std::uint64_t limit) { return rng() % limit; }

class simulated_disk : public journal::disk {
 public:
  static constexpr std::size_t sector = 512;
  explicit simulated_disk(std::uint64_t bytes) : medium_(bytes), seen_(bytes) {}

  /// The power fails at the so-manieth operation from now: everything after it gives EIO.
  void fail_after(long operations) { left_ = operations; }
  bool has_failed() const { return left_ == 0; }
  long operations() const { return operations_; }

  std::uint64_t bytes() const override { return seen_.size(); }
  int read(std::uint64_t offset, std::span<std::byte> to) override {
    std::memcpy(to.data(), seen_.data() + offset, to.size());
    return 0;
  }
  int write(std::uint64_t offset, std::span<std::byte const> from) override {
    if (offset + from.size() > seen_.size()) return ENOSPC;
    if (offset % 4096 != 0 || from.size() % 4096 != 0) return EINVAL;
    if (!tick()) {
      // The one during which the power fails may have reached the medium in parts.
      if (last_) pending_.push_back({offset, {from.begin(), from.end()}});
      return EIO;
    }
    pending_.push_back({offset, {from.begin(), from.end()}});
    std::memcpy(seen_.data() + offset, from.data(), from.size());
    return 0;
  }
  int flush() override {
    if (!tick()) return EIO;
    for (auto const& w : pending_)
      std::memcpy(medium_.data() + w.offset, w.bytes.data(), w.bytes.size());
    pending_.clear();
    return 0;
  }

  /// The power comes back.
  void crash(randomness& rng) {
    double const keep = std::vector<double>{0, 0.1, 0.5, 0.9, 1}[below(rng, 5)];
    bool const torn = chance(rng, 0.5);
    for (auto const& w : pending_) {
      bool const whole = chance(rng, keep);
      for (std::size_t at = 0; at < w.bytes.size(); at += sector)
        if (torn ? chance(rng, keep) : whole)
          std::memcpy(medium_.data() + w.offset + at, w.bytes.data() + at, sector);
    }
    pending_.clear();
    seen_ = medium_;
    left_ = -1;
    last_ = false;
  }

 private:
  struct pending {
    std::uint64_t offset;
    std::vector<std::byte> bytes;
  };

  bool tick() {
    ++operations_;
    if (left_ == 0) {
      last_ = false;
      return false;
    }
    if (left_ > 0 && --left_ == 0) {
      last_ = true;
      return false;
    }
    return true;
  }

  std::vector<std::byte> medium_, seen_;
  std::vector<pending> pending_;
  long left_ = -1;
  long operations_ = 0;
  bool last_ = false;
};

}  // namespace sluice::test
