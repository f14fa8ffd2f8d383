// SPDX-License-Identifier: Apache-2.0
// A job's amount over the nodes it runs on: by demand, who waits counting as many times as it has
// waiters, who does not as many times as those on average: else a busy node that just has enough
// would be cut below it, wait, be given more, and so on for ever. How many wait is what a node
// says: so none counts for more than a few times what half of them say. Two hundredths and all that
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
constexpr std::uint64_t most_times = 4;  // the median

/// The blocked of a child, and what they say together.
struct voice {
  std::uint64_t weight = 0, streams = 0;
  std::uint64_t mean() const { return streams == 0 ? 0 : weight / streams; }
};

/// Of all streams, the lower one.
std::uint64_t median(std::span<voice const> voices) {
  thread_local std::vector<voice> sorted;
  sorted.assign(voices.begin(), voices.end());
  std::ranges::sort(sorted, {}, &voice::mean);
  wide all = 0, below = 0;
  for (voice const& v : sorted) all += v.streams;
  for (voice const& v : sorted)
    if (below += v.streams; 2 * below >= all && v.streams > 0) return v.mean();
  return 0;
}

/// What each stream counts for at most, of which the weights are cut to that.
std::uint64_t bound(std::span<voice> voices) {
  std::uint64_t least = unbounded, most = 0;
  for (voice const& v : voices) {
    if (v.streams == 0) continue;
    least = std::min(least, v.mean());
    most = std::max(most, v.mean());
  }
  if (most / most_times < std::max<std::uint64_t>(least, 1)) return unbounded;  // nearly always
  std::uint64_t const usual = std::max<std::uint64_t>(median(voices), 1);
  std::uint64_t const of_stream = most_times * std::min(usual, unbounded / most_times);
  for (voice& v : voices)
    v.weight = static_cast<std::uint64_t>(std::min<wide>(v.weight, wide{of_stream} * v.streams));
  return of_stream;
}

struct mean_weight {
  wide weight = 0, streams = 0;
  void add(voice const& v) {
    weight += v.weight;
    streams += v.streams;
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
bool find_ramps(std::span<demand_bins const> children, std::span<voice const> voices, rate amount,
                std::vector<ramp>& ramps) {
  thread_local std::vector<progress> state;
  state.clear();
  mean_weight mean;
  for (voice const& v : voices) mean.add(v);
  for (std::size_t i = 0; i < children.size(); ++i)
    state.push_back(
        {0, (streams(children[i]) - voices[i].streams) * one + mean.of(voices[i].weight)});
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

std::uint64_t split(std::span<demand_bins const> children, rate amount, std::span<rate> parts) {
  thread_local std::vector<ramp> ramps;
  thread_local std::vector<voice> voices;
  if (children.empty()) return unbounded;
  voices.clear();
  for (demand_bins const& b : children) voices.push_back({b.blocked_weight, b.blocked});
  std::uint64_t const most = bound(voices);
  if (find_ramps(children, voices, amount - alike(amount), ramps)) {
    interpolate(ramps, amount - alike(amount), parts);
  } else {
    std::transform(ramps.begin(), ramps.end(), parts.begin(),
                   [](ramp const& r) { return static_cast<rate>(r.from); });
  }
  rate left = amount;
  for (rate part : parts) left -= part;
  add_alike(children, left, parts);
  return most;
}

std::uint64_t split(std::span<leaf const> nodes, rate amount, std::span<rate> parts) {
  thread_local std::vector<basin> basins;
  thread_local std::vector<voice> voices;
  basins.clear();
  voices.clear();
  for (leaf const& n : nodes) voices.push_back(is_blocked(n) ? voice{weight_of(n), 1} : voice{});
  std::uint64_t const most = bound(voices);
  mean_weight mean;
  for (voice const& v : voices) mean.add(v);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    leaf const& n = nodes[i];
    std::uint64_t const weight = is_blocked(n) ? mean.of(voices[i].weight) : one;
    basins.push_back({0, is_blocked(n) ? unbounded : with_headroom(n.served),
                      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(weight, 1, ~0u))});
  }
  if (nodes.empty()) return most;
  water_fill(basins, amount - alike(amount), parts);
  rate left = amount;
  for (rate part : parts) left -= part;
  add_alike(nodes, left, parts);
  return most;
}

}  // namespace sluice::policies
