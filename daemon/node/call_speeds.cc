// SPDX-License-Identifier: Apache-2.0
#include "node/call_speeds.h"

#include "node/call_times.h"

namespace sluice::node {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint64_t most_calls_seen = 1'000'000'000, most_ns_seen = 1'000'000'000'000'000;

policies::call_speeds speeds_of(foreign<abi::call_time> const& t, std::uint64_t samples,
                                std::uint64_t wanted_ns) {
  core::histogram_counts counts = {};
  as_shared(t.took).add_to(counts);
  return {samples, counts.total(), slower_than(counts, wanted_ns), t.took_ns.load(relaxed)};
}

/// Nothing where it is no plain growth.
policies::call_speeds more_than(policies::call_speeds const& before,
                                policies::call_speeds const& now) {
  policies::call_speeds const more = {now.samples - before.samples, now.calls - before.calls,
                                      now.slow - before.slow, now.took_ns - before.took_ns};
  bool const is_sane = more.calls <= most_calls_seen && more.samples <= more.calls &&
                       more.slow <= more.calls && more.took_ns <= most_ns_seen;
  return is_sane ? more : policies::call_speeds{};
}

}  // namespace

std::uint64_t slower_than(core::histogram_counts const& h, std::uint64_t wanted_ns) {
  std::size_t const edge = core::histogram_step(wanted_ns);
  std::uint64_t slow = 0;
  for (std::size_t i = edge + 1; i < core::histogram_steps; ++i) slow += h.count[i];
  std::uint64_t const low = core::histogram_low(edge), width = core::histogram_low(edge + 1) - low;
  if (wanted_ns >= low + width) return slow;
  return slow +
         static_cast<std::uint64_t>(core::u128(h.count[edge]) * (low + width - wanted_ns) / width);
}

void look_at_speeds(foreign<abi::segment> const& s, policy::site const& site,
                    std::span<policy::supply const* const> supplies, told_speeds& told,
                    std::span<policies::call_speeds> speeds) {
  if (!told.has_begun) told.target = target_names(s, site);
  for (unsigned i = 0; i < supplies.size(); ++i) {
    policy::supply const& of = *supplies[i];
    std::uint64_t const ops = core::ops_of_selector(of.resource);
    std::uint64_t const wanted_ns =
        of.steered ? static_cast<std::uint64_t>(of.steered->wanted_ns) : ~std::uint64_t{0};
    for (unsigned t = 0; t < told.target.size(); ++t) {
      if (told.target[t] != of.target) continue;
      for (unsigned o = 0; o < core::op_count; ++o) {
        if ((ops >> o & 1) == 0) continue;
        policies::call_speeds& before = told.of[{i, t, o}];
        std::uint64_t const samples = s.time[t][o].samples.load(relaxed);
        if (samples == before.samples) continue;
        policies::call_speeds const now = speeds_of(s.time[t][o], samples, wanted_ns);
        if (told.has_begun) speeds[i].add(more_than(before, now));
        before = now;
      }
    }
  }
  told.has_begun = true;
}

}  // namespace sluice::node
