// SPDX-License-Identifier: Apache-2.0
// See times.h.
#include "times.h"

#include <bit>

#include "paths.h"

namespace sluice::times {

namespace {

// xorshift32 of Marsaglia (2003).
std::uint32_t roll() {
  std::uint32_t x = self.dice != 0 ? self.dice : self.tid | 1;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return self.dice = x;
}

// A quarter wider each time; then as long as any that is not wider.
void draw_gap() {
  std::uint32_t const wider = self.widest_gap + self.widest_gap / 4u + 1;
  self.widest_gap = static_cast<std::uint16_t>(wider < longest_gap ? wider : longest_gap);
  self.untimed = static_cast<std::uint16_t>(roll() % (self.widest_gap + 1u));
  self.untimed_left = self.untimed;
}

// Whatever has gone by since the gap was drawn is what the next sample stands for.
void end_gap() {
  self.untimed = static_cast<std::uint16_t>(self.untimed - self.untimed_left);
  self.untimed_left = 0;
}

/// How many calls this one stands for; 0: it is not timed.
std::uint32_t weight_of(core::op what) {
  if (what == core::op::fsync) return 1;
  if (self.untimed_left > 0) {
    --self.untimed_left;
    return 0;
  }
  std::uint32_t const weight = self.untimed + 1u;
  draw_gap();
  return weight;
}

void note_size(abi::access_sizes& of, core::op what, std::uint64_t moved, std::uint32_t weight) {
  auto const width = static_cast<unsigned>(std::bit_width(moved));
  auto& steps = what == core::op::read ? of.read : of.written;
  steps[width < abi::size_steps ? width : abi::size_steps - 1].fetch_add(weight,
                                                                         std::memory_order_relaxed);
}

}  // namespace

void begin(visit& v) {
  if (v.began_ns == visit::untimed) return;
  v.weight = weight_of(v.what);
  if (v.weight != 0 && v.began_ns == 0) v.began_ns = now_ns();
}

void note(visit const& v, bool failed, std::uint64_t moved) {
  std::int64_t const took_ns = now_ns() - v.began_ns;
  abi::segment* const s = stage.active.load(std::memory_order_relaxed);
  unsigned const target = (v.entry & entry_kind_mask) - entry_first_target;
  if (s == nullptr || target >= core::max_targets || took_ns < 0) return;
  if (took_ns >= slow_ns && v.what != core::op::fsync) end_gap();
  auto const value = static_cast<std::uint64_t>(took_ns);
  abi::call_time& t = s->time[target][static_cast<unsigned>(v.what)];
  touch_around(&t);
  t.took.add(value, v.weight);
  t.took_ns.fetch_add(value * v.weight, std::memory_order_relaxed);
  t.samples.fetch_add(1, std::memory_order_relaxed);
  if (moves_bytes(v.what) && !failed) note_size(s->size[target], v.what, moved, v.weight);
  if (v.path_slot != 0) paths::add_time(v, value * v.weight);
}

}  // namespace sluice::times
