// SPDX-License-Identifier: Apache-2.0
// Pages of one file, as ranges that neither touch nor overlap, in order. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

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

/// For who only reads them: first page and end, in order, neither touching nor overlapping.
using page_ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// What is in any of them.
inline page_ranges all_of(std::initializer_list<page_set const*> sets) {
  page_ranges sorted, all;
  for (auto const* const s : sets) sorted.insert(sorted.end(), s->all().begin(), s->all().end());
  std::sort(sorted.begin(), sorted.end());
  for (auto const& [first, end] : sorted)
    if (!all.empty() && all.back().second >= first)
      all.back().second = std::max(all.back().second, end);
    else
      all.emplace_back(first, end);
  return all;
}

}  // namespace sluice::journal
