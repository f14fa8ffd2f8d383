// SPDX-License-Identifier: Apache-2.0
#include "policies/tail_latency.h"

#include <algorithm>
#include <cmath>

namespace sluice::policies {

namespace {

constexpr unsigned at_flush = index_of(background::flush), at_low = index_of(background::low),
                   at_high = index_of(background::high);

constexpr double smooth_s = 0.1;     // span of the means
constexpr double saturated_s = 0.6;  // so long over what is kept free: no burst
constexpr double nearly = 0.95, clearly = 0.8;
constexpr double all_used = 0.9;  // of the total: the device has nothing to spare
constexpr double least_calm_s = 1, most_calm_s = 16, in_vain_s = 10;
constexpr double try_again = 10;               // times the calm that is wanted
constexpr double quiet_part = 1.0 / 1000;      // of the total
constexpr double most_held_s[] = {5, 10, 60};  // of each kind
constexpr double held_again = 0.5;             // of these: a debt is paid
constexpr double longest_look_s = 1;

constexpr std::string_view sign_names[] = {"quiet", "holding", "debt", "saturation"};
constexpr std::string_view sign_words[] = {
    "the foreground is quiet: nothing is limited",
    "background work has what the foreground leaves",
    "nothing is limited: background work was put off for too long",
    "nothing is limited: the foreground wants more than is kept free for it",
};
static_assert(std::size(sign_names) == tail_sign_count && std::size(sign_words) == tail_sign_count);

constexpr background_rates unlimited_rates = {unbounded, unbounded, unbounded};

rate less(rate a, rate b) { return a > b ? a - b : 0; }

rate whole(double r) { return r >= 1.8e19 ? unbounded : r <= 0 ? 0 : static_cast<rate>(r); }

}  // namespace

std::string_view name_of(tail_sign s) { return sign_names[static_cast<unsigned>(s)]; }
std::string_view words_of(tail_sign s) { return sign_words[static_cast<unsigned>(s)]; }

background_rates divide_paio(tail_terms const& t, rate foreground, background_rates const& moved) {
  rate const left = std::max(less(t.total, foreground), t.floor);
  bool const flushes = moved[at_flush] != 0, compacts = moved[at_low] != 0;
  if (flushes && compacts) return {left / 2, left / 2, t.floor};
  if (flushes) return {left, t.floor, t.floor};
  if (compacts) return {t.floor, left, t.floor};
  return {t.floor, t.floor, left};
}

background_rates divide_silk(tail_terms const& t, rate foreground, background_rates const& moved) {
  rate const left = std::max(less(t.total, foreground), t.floor);
  bool const flushes = moved[at_flush] != 0, compacts = moved[at_low] != 0;
  if (flushes && compacts) return {std::max(left / 2, t.floor), std::max(left / 2, t.floor), 0};
  if (flushes || compacts) return {left, left, 0};
  return {left, left, left};
}

background_rates divide_guarded(tail_terms const& t, rate foreground,
                                background_rates const& moved) {
  rate const left = std::max(less(t.total, std::min(foreground, t.foreground)), t.floor);
  rate const after_flush = std::max({less(left, moved[at_flush]), left / 2, t.floor});
  rate const after_both = std::max(less(less(left, moved[at_flush]), moved[at_low]), t.floor);
  return {left, after_flush, after_both};
}

void tail_latency::mean::add(double now, double span_s, double of_s) {
  value += (now - value) * (1 - std::exp(-span_s / of_s));
  if (value < 1) value = 0;
}

void tail_latency::look(tail_look const& l, std::int64_t now_ns) {
  if (!has_begun_ || now_ns <= looked_ns_) {
    looked_ns_ = has_begun_ ? std::max(now_ns, looked_ns_) : now_ns;
    has_begun_ = true;
    return;
  }
  double const span_s = std::min(static_cast<double>(now_ns - looked_ns_) / 1e9, longest_look_s);
  looked_ns_ = now_ns;
  measure(l, span_s);
  bool const is_ours = terms_.how == tail_algorithm::guarded;
  if (is_guarding()) {
    keep_guard(span_s);
  } else {
    free_s_ += span_s;
    sign_ = unguarded();
    if (is_ours)
      if (auto const why = due_guard(l)) guard(*why);
  }
  rates_ = is_guarding() || (is_ours && sign_ == tail_sign::quiet) ? unlimited_rates : divide(l);
}

void tail_latency::measure(tail_look const& l, double span_s) {
  foreground_.add(static_cast<double>(l.foreground), span_s, smooth_s);
  bool const wants_more = foreground_.value >= nearly * kept_free();
  g_.saturated_s =
      std::clamp(g_.saturated_s + (wants_more ? span_s : -span_s), 0.0, 2 * saturated_s);
  for (unsigned i = 0; i < background_count; ++i) {
    moved_[i].add(static_cast<double>(l.moved[i]), span_s, smooth_s);
    // Work that is limited does not wait all the time: it has to do something as well.
    bool const is_free = rates_[i] == unbounded || l.moved[i] == 0;
    double const change_s = l.waits[i] ? span_s : is_free ? -span_s : 0;
    g_.held_s[i] = std::max(g_.held_s[i] + change_s, 0.0);
  }
}

double tail_latency::kept_free() const {
  return static_cast<double>(std::min(terms_.foreground, less(terms_.total, terms_.floor)));
}

background_rates tail_latency::divide(tail_look const& l) const {
  background_rates moved;
  // Who waits is at work, even where nothing of it passed in this look.
  for (unsigned i = 0; i < background_count; ++i)
    moved[i] = std::max(whole(moved_[i].value), rate{l.waits[i] ? 1u : 0u});
  rate const foreground = whole(foreground_.value);
  switch (terms_.how) {
    case tail_algorithm::paio_2022:
      return divide_paio(terms_, foreground, moved);
    case tail_algorithm::silk_2019:
      return divide_silk(terms_, foreground, moved);
    default:
      return divide_guarded(terms_, foreground, moved);
  }
}

std::optional<tail_sign> tail_latency::due_guard(tail_look const& l) const {
  bool const is_held = l.waits[at_flush] || l.waits[at_low] || l.waits[at_high];
  if (g_.saturated_s >= saturated_s && is_held) return tail_sign::saturation;
  for (unsigned i = 0; i < background_count; ++i)
    if (g_.held_s[i] > most_held_s[i]) return tail_sign::debt;
  return std::nullopt;
}

/// A guard that comes soon after another one ended has ended in vain: the next holds longer.
void tail_latency::guard(tail_sign why) {
  double& calm = g_.calm_wanted_s;
  calm = free_s_ < in_vain_s ? std::min(calm * 2, most_calm_s) : least_calm_s;
  sign_ = why;
  g_.saturated_s = g_.calm_s = g_.guarded_s = 0;
}

bool tail_latency::is_foreground_quiet() const {
  return foreground_.value < quiet_part * static_cast<double>(terms_.total);
}

/// What made the guard hold is still there.
bool tail_latency::has_reason() const {
  if (sign_ == tail_sign::saturation) {
    double all = foreground_.value;
    for (auto const& m : moved_) all += m.value;
    return foreground_.value >= clearly * kept_free() ||
           all >= all_used * static_cast<double>(terms_.total);
  }
  for (unsigned i = 0; i < background_count; ++i)
    if (g_.held_s[i] > held_again * most_held_s[i]) return true;
  return false;
}

/// Without limits a device that is full says nothing of what the foreground would take alone: so it
/// is tried again after a while, ever more rarely.
void tail_latency::keep_guard(double span_s) {
  g_.calm_s = has_reason() ? 0 : g_.calm_s + span_s;
  g_.guarded_s += span_s;
  bool const is_to_try =
      sign_ == tail_sign::saturation && g_.guarded_s >= try_again * g_.calm_wanted_s;
  if (g_.calm_s < g_.calm_wanted_s && !is_to_try && !is_foreground_quiet()) return;
  sign_ = unguarded();
  free_s_ = 0;
}

}  // namespace sluice::policies
