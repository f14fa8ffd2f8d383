// SPDX-License-Identifier: Apache-2.0
#include "segment/touch.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>

#include "abi/ring_area.h"
#include "abi/role_area.h"
#include "segment/curve.h"
#include "segment/each_shard.h"

namespace sluice::segment {

namespace {

using abi::after_state;

void wake(foreign<std::atomic<std::uint32_t>>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, ~0u);
}

void change_slot(foreign<abi::after_slot>& s, std::uint32_t expected, after_state next) {
  s.word.compare_exchange_strong(expected, abi::word_of(expected >> 3, next));
}

void answer(foreign<abi::after_area>& a, memory_change const& c) {
  foreign<abi::after_slot>& s = a.slot[c.index];
  if (c.result != 0)
    abi::put_text(as_shared(a.head.reason), c.text, strnlen(c.text, sizeof c.text));
  s.result.store(c.result);
  std::uint32_t seen = c.expected;
  if (s.word.compare_exchange_strong(seen, abi::word_of(seen >> 3, after_state::done)))
    wake(s.word);
}

/// Parts of two segments that lie at the same place.
class copying {
 public:
  copying(foreign<abi::segment> const& from, abi::segment& to)
      : from_(reinterpret_cast<char const*>(&as_shared(from))), to_(reinterpret_cast<char*>(&to)) {}
  /// So many bytes, from a part of `to` on.
  void bytes(void* part, std::size_t count) {
    std::memcpy(part, from_ + (static_cast<char*>(part) - to_), count);
  }
  template <class Part>
  void whole(Part& part) {
    bytes(&part, sizeof part);
  }

 private:
  char const* from_;
  char* to_;
};

void copy_glance(copying& c, abi::segment& to, unsigned channels) {
  c.bytes(&to, offsetof(abi::segment, bucket) + channels * sizeof(core::bucket));
  each_shard(to, [&](abi::shard& s) {
    c.bytes(&s, offsetof(abi::shard, channel) + channels * sizeof(abi::channel_counters));
  });
  c.bytes(to.channel, channels * sizeof(abi::channel_state));
}

void copy_counts(copying& c, foreign<abi::segment> const& from, abi::segment& to) {
  c.whole(to.rules);
  unsigned const targets = std::min(to.rules.target_count, core::max_targets);
  c.bytes(to.size, targets * sizeof(abi::access_sizes));
  c.bytes(to.hint, offsetof(abi::segment, time) - offsetof(abi::segment, hint));
  for (unsigned t = 0; t < targets; ++t)
    for (unsigned i = 0; i < core::op_count; ++i)
      if (from.time[t][i].samples.load(std::memory_order_relaxed) != 0) c.whole(to.time[t][i]);
  each_shard(to, [&](abi::shard& s) { c.whole(s.call); });
}

}  // namespace

std::size_t bytes_of(region_kind kind) {
  switch (kind) {
    case region_kind::segment:
      return sizeof(abi::segment);
    case region_kind::after:
      return sizeof(abi::after_area);
    case region_kind::roles:
      return sizeof(abi::role_area);
    case region_kind::rings:
      return offsetof(abi::ring_area, begun);
  }
  return 0;
}

void apply(foreign<abi::segment>& s, memory_change const& c) {
  if (c.what == touch::curve && c.index < core::max_channels)
    write_curve(s, c.index, c.curve, c.at_ns);
  if (c.what == touch::holder) s.head.holder.store(c.word);
  if (c.what == touch::beside) s.head.areas.fetch_or(static_cast<std::uint32_t>(c.word));
}

void apply(foreign<abi::after_area>& a, memory_change const& c) {
  if (c.what == touch::known) {
    a.head.book.store(c.word);
    a.head.known.store(1);
    wake(a.head.known);
  }
  if (c.index >= abi::after_slots) return;
  foreign<abi::after_slot>& s = a.slot[c.index];
  if (c.what == touch::free_slot) change_slot(s, c.expected, after_state::free);
  if (c.what == touch::take_slot) change_slot(s, c.expected, after_state::taken);
  if (c.what == touch::waits_for)
    abi::put_text(as_shared(s.waits_for), c.text, strnlen(c.text, sizeof c.text));
  if (c.what == touch::answer) answer(a, c);
}

void copy_parts(foreign<abi::segment> const& from, abi::segment& to, std::uint32_t parts) {
  copying c(from, to);
  std::uint32_t const named = from.rules.channel_count;
  unsigned const channels = std::min(named, core::max_channels);
  if ((parts & glance) != 0) copy_glance(c, to, channels);
  if ((parts & slots) != 0) c.whole(to.far_process);
  if ((parts & counts) != 0) copy_counts(c, from, to);
}

}  // namespace sluice::segment
