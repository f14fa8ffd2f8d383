// SPDX-License-Identifier: Apache-2.0
// Pages of one file, as ranges that neither touch nor overlap, in order. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace sluice::journal {

inline constexpr std::uint64_t page_bytes = 4096;

class page_set {
 public:
  using ranges = std::map<std::uint64_t, std::uint64_t>;  // first page, end

  void add(std::uint64_t first, std::uint64_t end) {
    if (first >= end) return;
    auto at = ranges_.upper_bound(first);
    if (at != ranges_.begin() && std::prev(at)->second >= first) --at;
    while (at != ranges_.end() && at->first <= end) {
      first = std::min(first, at->first);
      end = std::max(end, at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace(first, end);
  }
  void add(page_set const& other) {
    for (auto const& [first, end] : other.ranges_) add(first, end);
  }
  /// What lies at or after `end` goes.
  void cut(std::uint64_t end) {
    while (!ranges_.empty() && ranges_.rbegin()->second > end) {
      auto const last = std::prev(ranges_.end());
      std::uint64_t const first = last->first;
      ranges_.erase(last);
      if (first < end) ranges_.emplace(first, end);
    }
  }
  std::uint64_t pages() const {
    std::uint64_t sum = 0;
    for (auto const& [first, end] : ranges_) sum += end - first;
    return sum;
  }
  bool empty() const { return ranges_.empty(); }
  bool contains(std::uint64_t page) const {
    auto const behind = ranges_.upper_bound(page);
    return behind != ranges_.begin() && std::prev(behind)->second > page;
  }
  void clear() { ranges_.clear(); }
  ranges const& all() const { return ranges_; }

 private:
  ranges ranges_;
};

}  // namespace sluice::journal
