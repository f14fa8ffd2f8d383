// SPDX-License-Identifier: Apache-2.0
// The times at which operations of one kind are due. Problem: a trace says how many there are in
// each interval, fractions after scaling; several threads share them, and nobody may talk to
// another about it. Idea: the sum of all operations asked for is a curve over time; operation k is
// due when the curve reaches k and a phase, and thread w of n takes every n-th. What stays true: in
// any stretch of time the number of operations is that of the curve, to within one; the same
// arguments give the same times; time is seconds after the start, never a clock.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::replay {

inline constexpr double never_s = std::numeric_limits<double>::infinity();

/// When the load begins and ends; it is counted from 0 on.
struct span {
  double warm_up_s = 0;
  double end_s = never_s;
};

/// How much was asked for until a moment: straight between the borders of intervals. Before 0, in
/// the warm-up, it is negative and as steep as in the first interval.
class curve {
 public:
  curve() = default;
  /// `amounts` of intervals of `step_s`, in units of `unit` (1, or the bytes of one operation).
  curve(std::vector<double> const& amounts, double step_s, double unit, span s = {});

  double first() const { return first_; }
  double last() const { return at(end_s_); }
  double at(double time_s) const;
  /// The moment at which the curve reaches `level`; `cursor` remembers the interval, so that rising
  /// levels cost nothing to find. never_s: beyond the end.
  double time_of(double level, std::size_t& cursor) const;

 private:
  std::vector<double> sum_ = {0};  // at the borders of intervals
  double step_s_ = 1;
  double end_s_ = never_s;
  double first_ = 0;  // level at the beginning of the warm-up
};

/// Which operations a thread takes.
struct part {
  unsigned index = 0;
  unsigned of = 1;
};

enum class arrivals : std::uint8_t { even, poisson };

struct schedule_settings {
  arrivals kind = arrivals::even;
  double phase = 0.5;      // 0 to 1: keeps streams of equal rates apart
  std::uint64_t seed = 1;  // poisson only
};

class schedule {
 public:
  schedule(curve const& c, part p, schedule_settings const& s);
  /// When the next one is meant for; never_s when there is none.
  double next_s() const { return next_s_; }
  void advance();

 private:
  double step();

  curve const* curve_;
  arrivals kind_;
  double stride_;
  double level_;
  std::size_t cursor_ = 0;
  std::uint64_t random_;
  double next_s_ = never_s;
};

/// How many operations of all threads together are meant for [from_s, to_s).
std::uint64_t count_even(curve const& c, double phase, double from_s, double to_s);

/// A fraction that differs for every stream and spreads evenly.
double phase_of(unsigned stream);

/// xorshift64*: a stream of numbers per thread, the same on every machine.
std::uint64_t next_random(std::uint64_t& state);
/// A state for next_random: never 0, far apart for near arguments.
std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t index);

}  // namespace sluice::replay
