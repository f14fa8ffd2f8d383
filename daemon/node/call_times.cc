// SPDX-License-Identifier: Apache-2.0
#include "node/call_times.h"

#include <algorithm>

#include "base/error.h"
#include "segment/counted.h"
#include "segment/mapping.h"
#include "segment/sums.h"

namespace sluice::node {

namespace {

using runtime::distribution;

constexpr double most_calls = 1e9, most_s = 1e6;  // between two looks

/// Nothing when the memory went back or jumped; `told` follows it.
distribution growth(distribution& told, distribution const& now) {
  distribution more;
  for (std::size_t i = 0; i < now.count.size(); ++i) more.count[i] = now.count[i] - told.count[i];
  more.sum_s = now.sum_s - told.sum_s;
  told = now;
  bool const is_sane =
      std::all_of(more.count.begin(), more.count.end(), [](double n) { return n >= 0; }) &&
      more.total() <= most_calls && more.sum_s >= 0 && more.sum_s <= most_s;
  return is_sane ? more : distribution{};
}

distribution took(foreign<abi::call_time> const& t) {
  core::histogram_counts counts = {};
  as_shared(t.took).add_to(counts);
  return distribution::of(counts, t.took_ns.load(std::memory_order_relaxed));
}

}  // namespace

std::vector<std::string> target_names(foreign<abi::segment> const& s, policy::site const& site) {
  std::vector<std::string> names(core::max_targets, call_times::elsewhere);
  try {
    auto const rules = segment::rules_of(s);
    names.resize(rules->target_count, call_times::elsewhere);
    for (unsigned t = 1; t < rules->target_count; ++t)
      for (auto const& of : site.targets)
        if (of.name == core::view(*rules, rules->target[t].name)) names[t] = of.name;
  } catch (error const&) {
    // Scribbled over: all of it is elsewhere.
  }
  return names;
}

void call_times::look_at_calls(foreign<abi::segment> const& s, told_times& told,
                               policy::site const& site, std::string_view qos_class) {
  if (!told.is_named) told.target = target_names(s, site);
  told.is_named = true;
  for (std::size_t t = 0; t < told.target.size(); ++t)
    for (unsigned o = 0; o < core::op_count; ++o) {
      if (s.time[t][o].samples.load(std::memory_order_relaxed) == 0) continue;
      distribution const more = growth(told.calls[t * core::op_count + o], took(s.time[t][o]));
      if (more.total() == 0) continue;
      calls_[{std::string(qos_class), std::string(core::op_table[o].name), told.target[t]}].add(
          more);
    }
}

void call_times::look_at_waits(foreign<abi::segment> const& s, unsigned channel, told_times& told,
                               std::string_view qos_class) {
  distribution const now =
      distribution::of(segment::waits_of(s, channel), segment::sum_channel(s, channel).waited_ns);
  distribution const more = growth(told.waits[channel], now);
  if (more.total() != 0) waits_[std::string(qos_class)].add(more);
}

void call_times::publish(runtime::metric_table& m) const {
  for (auto const& [key, of] : calls_)
    m.set(runtime::metric::call_duration_seconds, {key[0], key[1], key[2]}, of);
  for (auto const& [qos_class, of] : waits_)
    m.set(runtime::metric::wait_duration_seconds, {qos_class}, of);
}

}  // namespace sluice::node
