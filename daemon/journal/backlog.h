// SPDX-License-Identifier: Apache-2.0
// How much data in the journal is not yet safe at home, and since when. Records of a short time are
// one entry, under its last LSN, so there are few entries. Pure.
#pragma once

#include <cstdint>
#include <deque>

namespace sluice::journal {

class backlog {
 public:
  /// So much was logged before, and is safe.
  explicit backlog(std::uint64_t before = 0) : bytes_logged_(before), bytes_home_(before) {}

  /// Bytes that are in the journal up to `lsn`, which grows.
  void logged(std::uint64_t lsn, std::uint64_t bytes, std::uint64_t now_ns);
  /// All below `head` is safe at home.
  void freed(std::uint64_t head);

  std::uint64_t bytes_logged() const { return bytes_logged_; }
  std::uint64_t bytes_home() const { return bytes_home_; }
  /// 0: nothing is left.
  std::uint64_t oldest_ns() const { return left_.empty() ? 0 : left_.front().since_ns; }

 private:
  struct entry {
    std::uint64_t lsn, bytes, since_ns;
  };
  std::deque<entry> left_;
  std::uint64_t bytes_logged_, bytes_home_;
};

}  // namespace sluice::journal
