// SPDX-License-Identifier: Apache-2.0
// Weighted max-min: raise one common level until the capacity is used up; who has enough stops, who
// has a floor starts there. Every amount is a whole number that never falls when the level rises,
// and the level is searched on a grid of whole numbers: the answer is the highest level that fits,
// plus, in order, the steps of the next one that still fit. So the result does not depend on how
// the level was found, the sum is exact, and more capacity never takes a single unit from anybody
// (shares rounded down with the remainder dealt out do: the Alabama paradox).
#include <algorithm>
#include <bit>

#include "policies/allocate.h"

namespace sluice::policies {
namespace {

using wide = unsigned __int128;

/// Amounts at a level: (weight * level) >> shift, kept between low and high. Number holds the sum
/// of all and the heaviest weight times the highest level; half the width is four times as fast.
template <class Number>
struct slope_view {
  std::span<basin const> basins;
  rate capacity;
  unsigned shift;

  static Number weight(basin const& b) { return std::max<std::uint32_t>(b.weight, 1); }
  Number flow(basin const& b, Number level) const { return (weight(b) * level) >> shift; }
  Number high(basin const& b) const { return std::max(b.low, std::min(b.high, capacity)); }
  rate at(std::size_t i, wide level) const {
    basin const& b = basins[i];
    Number const x = flow(b, static_cast<Number>(level));
    return static_cast<rate>(std::min(std::max<Number>(x, b.low), high(b)));
  }
};

/// The same for floors that do not fit: each gets its part of them.
struct scale_view {
  std::span<basin const> basins;
  static constexpr unsigned shift = 32;

  wide weight(basin const& b) const { return b.low; }
  rate at(std::size_t i, wide level) const {
    return static_cast<rate>((wide{basins[i].low} * level) >> shift);
  }
};

struct sample {
  wide sum = 0;
  wide slope = 0;  // weight of those that rise with the level
};

template <class Number>
sample measure(slope_view<Number> const& view, wide level) {
  Number sum = 0, slope = 0;
  for (basin const& b : view.basins) {
    Number const x = view.flow(b, static_cast<Number>(level));
    Number const top = view.high(b);
    // No branches: which basins rise is as good as random.
    sum += std::min(std::max<Number>(x, b.low), top);
    slope += view.weight(b) * static_cast<Number>((x > b.low) & (x < top));
  }
  return {sum, slope};
}

sample measure(scale_view const& view, wide level) {
  sample s;
  for (std::size_t i = 0; i < view.basins.size(); ++i) {
    s.sum += view.at(i, level);
    s.slope += view.basins[i].low;
  }
  return s;
}

/// The highest level whose sum fits. `below` fits, `above` does not.
template <class View>
wide highest_fitting(View const& view, wide capacity, wide below, wide above, wide start) {
  if (above - below <= 1) return below;
  wide level = std::clamp(start, below + 1, above - 1);
  for (unsigned pass = 1; above - below > 1; ++pass) {
    sample const s = measure(view, level);
    bool const fits = s.sum <= capacity;
    (fits ? below : above) = level;
    wide const gap = fits ? capacity - s.sum : s.sum - capacity;
    wide const middle = below + (above - below) / 2;
    // Newton; where it would leave the bracket or dawdles, halve.
    if (s.slope == 0 || pass % 4 == 0 || gap >> 64 != 0) {
      level = middle;
      continue;
    }
    wide const step = std::max<wide>((gap << view.shift) / s.slope, 1);
    if (fits) {
      level = step < above - below ? below + step : middle;
    } else {
      level = step < above - below ? above - step : middle;
    }
  }
  return below;
}

template <class View>
void settle(View const& view, rate capacity, wide level, std::span<rate> out) {
  rate left = capacity;
  for (std::size_t i = 0; i < out.size(); ++i) left -= out[i] = view.at(i, level);
  for (std::size_t i = 0; i < out.size() && left > 0; ++i) {
    rate const step = std::min(left, view.at(i, level + 1) - out[i]);
    out[i] += step;
    left -= step;
  }
}

}  // namespace

void water_fill(std::span<basin const> basins, rate capacity, std::span<rate> out) {
  wide low = 0, high = 0, weight = 0;
  std::uint32_t lightest = ~std::uint32_t{0}, heaviest = 1;
  for (basin const& b : basins) {
    std::uint32_t const w = std::max<std::uint32_t>(b.weight, 1);
    low += b.low;
    high += std::max(b.low, b.high);
    weight += w;
    lightest = std::min(lightest, w);
    heaviest = std::max(heaviest, w);
  }
  if (high <= capacity) {
    std::transform(basins.begin(), basins.end(), out.begin(),
                   [](basin const& b) { return std::max(b.low, b.high); });
  } else if (low > capacity) {
    scale_view const view{basins};
    wide const whole = wide{1} << view.shift;
    wide const start = (wide{capacity} << view.shift) / low;
    settle(view, capacity, highest_fitting(view, capacity, 0, whole, start), out);
  } else {
    // No level step moves an amount by more than one.
    auto const shift = static_cast<unsigned>(std::bit_width(heaviest));
    wide const most = ((wide{capacity} << shift) + lightest - 1) / lightest + 1;
    wide const start = (wide{capacity} << shift) / weight;
    auto const fill = [&](auto const& view) {
      settle(view, capacity, highest_fitting(view, capacity, 0, most, start), out);
    };
    bool const fits = (most * heaviest) >> 64 == 0 && (wide{capacity} * basins.size()) >> 64 == 0;
    if (fits)
      fill(slope_view<std::uint64_t>{basins, capacity, shift});
    else
      fill(slope_view<wide>{basins, capacity, shift});
  }
}

}  // namespace sluice::policies
