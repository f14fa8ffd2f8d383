// SPDX-License-Identifier: Apache-2.0
#include "journal/backlog.h"

#include <algorithm>

namespace sluice::journal {

namespace {

constexpr std::uint64_t together_ns = 100'000'000;
constexpr std::size_t most_entries = 256;  // where nothing is freed for long

}  // namespace

void backlog::logged(std::uint64_t lsn, std::uint64_t bytes, std::uint64_t now_ns) {
  bytes_logged_ += bytes;
  bool const is_apart = left_.empty() || (now_ns - left_.back().since_ns > together_ns &&
                                          left_.size() < most_entries);
  if (is_apart) return left_.push_back({lsn, bytes, now_ns});
  left_.back().lsn = std::max(left_.back().lsn, lsn);
  left_.back().bytes += bytes;
}

void backlog::freed(std::uint64_t head) {
  for (; !left_.empty() && left_.front().lsn <= head; left_.pop_front())
    bytes_home_ += left_.front().bytes;
}

}  // namespace sluice::journal
