// SPDX-License-Identifier: Apache-2.0
// A job's amount over the nodes it runs on: by demand, who waits counting as many times as it has
// waiters, who does not as many times as those on average: else a busy node that just has enough
// would be cut below it, wait, be given more, and so on for ever. Two hundredths and all that
// nobody asked for go to every stream alike, so that a silent node can start. A relay cannot send
// every demand: its histogram gives the sum of min(demand, level) exactly where the level is at the
// edge of a bin and a straight line between. Histograms add, so a tree divides as a flat controller
// would. All that came is given, whatever was reported.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "policies/allocate.h"
#include "policies/per_supply.h"

namespace sluice::policies {
namespace {

using wide = unsigned __int128;

constexpr unsigned first_edge_bits = 14;
constexpr rate alike(rate amount) { return amount / 50; }

unsigned bin_of(rate demand) {
  unsigned const width = std::bit_width(demand);
  return width <= first_edge_bits ? 0 : std::min(width - first_edge_bits, demand_bins::count - 1);
}

constexpr rate upper_edge(unsigned bin) { return rate{1} << (first_edge_bits + bin); }

std::uint64_t streams(demand_bins const& b) {
  std::uint64_t n = b.blocked;
  for (std::uint32_t nodes : b.nodes) n += nodes;
  return n;
}

std::uint64_t streams(leaf const&) { return 1; }

bool is_blocked(leaf const& n) { return n.blocked || n.waiters > 0; }
std::uint64_t weight_of(leaf const& n) { return std::max<std::uint32_t>(n.waiters, 1); }

/// Adds `amount`, in proportion to the number of streams; what rounding leaves, to the first.
template <class Child>
void add_alike(std::span<Child const> children, rate amount, std::span<rate> parts) {
  wide all = 0;
  for (Child const& c : children) all += streams(c);
  rate left = amount;
  for (std::size_t i = 0; i < children.size(); ++i) {
    wide const share =
        all > 0 ? wide{amount} * streams(children[i]) / all : wide{amount / children.size()};
    parts[i] += static_cast<rate>(share);
    left -= static_cast<rate>(share);
  }
  for (std::size_t i = 0; i < children.size() && left > 0; ++i) {
    if (all > 0 && streams(children[i]) == 0) continue;
    parts[i] += 1;
    left -= 1;
  }
}

/// Weights are in 1024ths of the mean of the blocked.
constexpr unsigned one = 1024;

struct mean_weight {
  wide weight = 0, streams = 0;
  void add(std::uint64_t w, std::uint64_t n) {
    weight += w;
    streams += n;
  }
  std::uint64_t of(std::uint64_t w) const {
    return weight == 0 ? 0 : static_cast<std::uint64_t>(wide{w} * one * streams / weight);
  }
};

/// What the streams of a child use together while the level goes from one edge to the next.
struct ramp {
  wide from = 0;
  wide rise = 0;
};

/// Where a child stands below an edge: what it was given in full, and how many still rise.
struct progress {
  wide full = 0;
  std::uint64_t rising = 0;  // weight of the blocked, and the streams of this bin and above
};

ramp at_bin(demand_bins const& b, progress const& p, unsigned bin) {
  wide const lower = bin == 0 ? 0 : upper_edge(bin - 1);
  std::uint64_t const above = p.rising - std::uint64_t{b.nodes[bin]} * one;
  wide const from = p.full + lower * p.rising / one;
  wide const to = p.full + b.demand[bin] + wide{upper_edge(bin)} * above / one;
  return {from, to > from ? to - from : 0};
}

/// parts = from + the excess of the amount over all `from`, in proportion to the rises,
/// rounded down.
void interpolate(std::span<ramp const> ramps, rate amount, std::span<rate> parts) {
  wide from = 0, rise = 0;
  for (ramp const& r : ramps) {
    from += r.from;
    rise += r.rise;
  }
  wide const excess = amount > from ? amount - from : 0;
  unsigned shift = 0;
  while (rise >> shift >> 63 != 0) ++shift;
  wide const unit = std::max<wide>(rise >> shift, 1);
  rate left = amount;
  for (std::size_t i = 0; i < ramps.size(); ++i) {
    wide const part = ramps[i].from + (ramps[i].rise >> shift) * excess / unit;
    parts[i] = static_cast<rate>(std::min<wide>(part, left));
    left -= parts[i];
  }
}

/// Fills `ramps` for the stretch of the level in which the children together use `amount`; false if
/// all they want is less.
bool find_ramps(std::span<demand_bins const> children, rate amount, std::vector<ramp>& ramps) {
  thread_local std::vector<progress> state;
  state.clear();
  mean_weight mean;
  for (demand_bins const& b : children) mean.add(b.blocked_weight, b.blocked);
  for (demand_bins const& b : children)
    state.push_back({0, (streams(b) - b.blocked) * one + mean.of(b.blocked_weight)});
  for (unsigned bin = 0; bin < demand_bins::count; ++bin) {
    wide reach = 0;
    ramps.clear();
    for (std::size_t i = 0; i < children.size(); ++i) {
      ramps.push_back(at_bin(children[i], state[i], bin));
      reach += ramps.back().from + ramps.back().rise;
      state[i].full += children[i].demand[bin];
      state[i].rising -= std::uint64_t{children[i].nodes[bin]} * one;
    }
    if (reach >= amount) return true;
  }
  // Only the blocked still rise.
  ramps.clear();
  bool rises = false;
  for (progress const& p : state) {
    ramps.push_back({p.full, p.rising});
    rises |= p.rising > 0;
  }
  return rises;
}

}  // namespace

void add_demand(demand_bins& bins, rate served, std::uint32_t waiters, bool blocked) {
  if (blocked || waiters > 0) {
    bins.blocked += 1;
    bins.blocked_weight += std::max<std::uint32_t>(waiters, 1);
    return;
  }
  rate const demand = with_headroom(served);
  unsigned const bin = bin_of(demand);
  bins.nodes[bin] += 1;
  bins.demand[bin] = saturating_add(bins.demand[bin], demand);
}

void merge(demand_bins& into, demand_bins const& from) {
  for (unsigned b = 0; b < demand_bins::count; ++b) {
    into.nodes[b] += from.nodes[b];
    into.demand[b] = saturating_add(into.demand[b], from.demand[b]);
  }
  into.blocked_weight += from.blocked_weight;
  into.blocked += from.blocked;
}

void split(std::span<demand_bins const> children, rate amount, std::span<rate> parts) {
  thread_local std::vector<ramp> ramps;
  if (children.empty()) return;
  if (find_ramps(children, amount - alike(amount), ramps)) {
    interpolate(ramps, amount - alike(amount), parts);
  } else {
    std::transform(ramps.begin(), ramps.end(), parts.begin(),
                   [](ramp const& r) { return static_cast<rate>(r.from); });
  }
  rate left = amount;
  for (rate part : parts) left -= part;
  add_alike(children, left, parts);
}

void split(std::span<leaf const> nodes, rate amount, std::span<rate> parts) {
  thread_local std::vector<basin> basins;
  basins.clear();
  mean_weight mean;
  for (leaf const& n : nodes)
    if (is_blocked(n)) mean.add(weight_of(n), 1);
  for (leaf const& n : nodes) {
    std::uint64_t const weight = is_blocked(n) ? mean.of(weight_of(n)) : one;
    basins.push_back({0, is_blocked(n) ? unbounded : with_headroom(n.served),
                      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(weight, 1, ~0u))});
  }
  if (nodes.empty()) return;
  water_fill(basins, amount - alike(amount), parts);
  rate left = amount;
  for (rate part : parts) left -= part;
  add_alike(nodes, left, parts);
}

}  // namespace sluice::policies
