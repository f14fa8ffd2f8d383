// SPDX-License-Identifier: Apache-2.0
// The pages of a file that were written since the last taking: a few ranges, each one atomic word,
// so that a writer may die between any two instructions. Writers add their pages after the write; a
// taker empties the set and reads the file afterwards. Pages added before the taking are read with
// their data; pages added later stay for the next one.
// Must stay true: a set covers at least the pages that were added and not taken. More is allowed,
// less never.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::core {

inline constexpr unsigned page_shift = 12;
inline constexpr unsigned most_ranges = 44;
inline constexpr unsigned pages_bits = 24;
inline constexpr std::uint64_t most_pages = (std::uint64_t{1} << pages_bits) - 1;
inline constexpr std::uint64_t end_of_pages = std::uint64_t{1} << 40;

struct page_range {
  std::uint64_t first;
  std::uint64_t pages;  // 0: nothing

  constexpr std::uint64_t end() const { return first + pages; }
};

/// first page << 24 | pages; 0 is a free place.
using packed_range = std::atomic<std::uint64_t>;
static_assert(packed_range::is_always_lock_free);

struct page_ranges {
  packed_range range[most_ranges];
};

constexpr std::uint64_t pack(page_range r) { return r.first << pages_bits | r.pages; }
constexpr page_range unpack(std::uint64_t word) { return {word >> pages_bits, word & most_pages}; }

/// The pages that the bytes [from, to) lie in. No pages when it is empty; `fits` says whether a set
/// can hold it at all.
constexpr page_range pages_of(std::uint64_t from, std::uint64_t to) {
  if (to <= from) return {0, 0};
  std::uint64_t const first = from >> page_shift;
  return {first, ((to - 1) >> page_shift) - first + 1};
}
constexpr bool fits(page_range r) {
  return r.pages != 0 && r.pages <= most_pages && r.first < end_of_pages && r.end() <= end_of_pages;
}

/// Both as one range; no pages when they do not touch, or would be too long.
constexpr page_range joined_range(page_range a, page_range b) {
  if (a.first > b.end() || b.first > a.end()) return {0, 0};
  std::uint64_t const first = a.first < b.first ? a.first : b.first;
  std::uint64_t const end = a.end() > b.end() ? a.end() : b.end();
  return end - first > most_pages ? page_range{0, 0} : page_range{first, end - first};
}

namespace detail {

enum class attempt { done, again, no };

/// Makes one place hold `added` as well.
inline attempt widen(packed_range& place, page_range added) {
  std::uint64_t seen = place.load();
  if (seen == 0) return attempt::no;
  page_range const both = joined_range(unpack(seen), added);
  if (both.pages == 0) return attempt::no;
  if (pack(both) == seen) return attempt::done;
  return place.compare_exchange_strong(seen, pack(both)) ? attempt::done : attempt::again;
}

}  // namespace detail

/// Adds pages, which must fit. False: no room, and nothing was added. Bounded, whatever others do.
inline bool add(page_ranges& to, page_range added) {
  // The bytes were copied before any place is looked at: one that covers them already may be taken
  // the moment we have seen it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (unsigned round = 0; round < 16; ++round) {
    packed_range* free_place = nullptr;
    bool again = false;
    for (packed_range& place : to.range) {
      detail::attempt const a = detail::widen(place, added);
      if (a == detail::attempt::done) return true;
      again |= a == detail::attempt::again;
      if (free_place == nullptr && place.load(std::memory_order_relaxed) == 0) free_place = &place;
    }
    std::uint64_t none = 0;
    if (!again && free_place == nullptr) return false;
    if (!again && free_place->compare_exchange_strong(none, pack(added))) return true;
  }
  return false;
}

/// Empties the set; `each(page_range)` for what was in it. Ranges may overlap.
template <class Each>
void take(page_ranges& from, Each&& each) {
  for (packed_range& place : from.range) {
    if (place.load() == 0) continue;
    if (std::uint64_t const word = place.exchange(0)) each(unpack(word));
  }
}

}  // namespace sluice::core
