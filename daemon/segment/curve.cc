// SPDX-License-Identifier: Apache-2.0
#include "segment/curve.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "core/token_bucket.h"

namespace sluice::segment {

namespace {

constexpr std::uint64_t most_waiting_units = std::uint64_t{1} << 50;

}  // namespace

void write_curve(foreign<abi::segment>& s, unsigned channel, core::curve_settings const& settings,
                 std::int64_t now_ns) {
  core::bucket& b = as_shared(s.bucket[channel]);
  std::uint32_t const mask = core::set_curve(b, settings, now_ns);
  if (mask == 0) return;
  auto* const word = reinterpret_cast<std::uint32_t*>(&core::futex_word(b));
  syscall(SYS_futex, word, FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, mask);
}

curve_writer writer_of(foreign<abi::segment>& s) {
  return [&s](unsigned channel, core::curve_settings const& settings, std::int64_t now_ns) {
    write_curve(s, channel, settings, now_ns);
  };
}

waiting who_waits(foreign<abi::segment> const& s, unsigned channel) {
  constexpr auto relaxed = std::memory_order_relaxed;
  unsigned const used = std::min(s.head.shards_used.load(relaxed), abi::owned_shards);
  waiting out;
  out.sees_everyone = used < abi::owned_shards;
  for (unsigned i = 0; i < used; ++i) {
    foreign<abi::waiter> const& w = s.owned[i].waiting;
    if (w.channel.load(relaxed) != channel + 1) continue;
    ++out.waiters;
    out.units += std::min(w.amount.load(relaxed), most_waiting_units);
  }
  return out;
}

}  // namespace sluice::segment
