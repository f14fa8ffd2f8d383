// SPDX-License-Identifier: Apache-2.0
#include "segment/sums.h"

#include <algorithm>

#include "calls.h"
#include "segment/each_shard.h"

namespace sluice::segment {

sums sum(foreign<abi::segment> const& s) {
  constexpr auto relaxed = std::memory_order_relaxed;
  sums total;
  total.call.resize(abi::max_calls);
  std::uint32_t const channels = s.rules.channel_count;
  total.channel.resize(std::min(channels, core::max_channels));
  auto const add = [&](foreign<abi::shard> const& from) {
    for (unsigned i = 0; i < abi::max_calls; ++i) {
      total.call[i].calls += from.call[i].calls.load(relaxed);
      total.call[i].errors += from.call[i].errors.load(relaxed);
      total.call[i].bytes += from.call[i].bytes.load(relaxed);
      total.call[i].delayed += from.call[i].delayed.load(relaxed);
      total.call[i].waited_ns += from.call[i].waited_ns.load(relaxed);
    }
    for (std::size_t i = 0; i < total.channel.size(); ++i) {
      total.channel[i].calls += from.channel[i].calls.load(relaxed);
      total.channel[i].amount += from.channel[i].amount.load(relaxed);
      total.channel[i].delayed += from.channel[i].delayed.load(relaxed);
      total.channel[i].waited_ns += from.channel[i].waited_ns.load(relaxed);
    }
  };
  each_shard(s, add);
  // A stage counts what a channel of operations takes only once.
  for (std::size_t i = 0; i < total.channel.size(); ++i)
    if (s.rules.channel[i].unit == static_cast<std::uint8_t>(core::unit_kind::ops))
      total.channel[i].amount = total.channel[i].calls;
  return total;
}

std::uint64_t sum_calls(foreign<abi::segment> const& s, unsigned call) {
  std::uint64_t total = 0;
  each_shard(s, [&](foreign<abi::shard> const& from) {
    total += from.call[call].calls.load(std::memory_order_relaxed);
  });
  return total;
}

channel_sums sum_channel(foreign<abi::segment> const& s, unsigned channel) {
  constexpr auto relaxed = std::memory_order_relaxed;
  channel_sums total;
  auto const add = [&](foreign<abi::shard> const& from) {
    foreign<abi::channel_counters> const& c = from.channel[channel];
    total.calls += c.calls.load(relaxed);
    total.amount += c.amount.load(relaxed);
    total.delayed += c.delayed.load(relaxed);
    total.waited_ns += c.waited_ns.load(relaxed);
  };
  each_shard(s, add);
  if (s.rules.channel[channel].unit == static_cast<std::uint8_t>(core::unit_kind::ops))
    total.amount = total.calls;
  return total;
}

std::vector<op_sums> sum_by_op(foreign<abi::segment> const& s) {
  constexpr auto relaxed = std::memory_order_relaxed;
  std::vector<op_sums> total(core::op_count);
  auto const add = [&](foreign<abi::shard> const& from) {
    for (unsigned i = 0; i < call_count; ++i) {
      op_sums& of = total[static_cast<unsigned>(call_table[i].op)];
      of.calls += from.call[i].calls.load(relaxed);
      of.bytes += from.call[i].bytes.load(relaxed);
    }
  };
  each_shard(s, add);
  auto const took_ns = took_by_op(s);
  for (unsigned i = 0; i < core::op_count; ++i) total[i].took_ns = took_ns[i];
  return total;
}

std::vector<std::uint64_t> took_by_op(foreign<abi::segment> const& s) {
  std::vector<std::uint64_t> total_ns(core::op_count);
  unsigned const named = s.rules.target_count;
  unsigned const targets = std::min(named, core::max_targets);
  for (unsigned t = 0; t < targets; ++t)
    for (unsigned i = 0; i < core::op_count; ++i)
      total_ns[i] += s.time[t][i].took_ns.load(std::memory_order_relaxed);
  return total_ns;
}

}  // namespace sluice::segment
