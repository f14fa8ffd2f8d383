// SPDX-License-Identifier: Apache-2.0
// How many threads does a request of some kind want? More of them raise the rate until the device,
// or the processors, have all they can use. Pure.
#pragma once

#include <algorithm>

namespace sluice::calibrate {

/// Doubles the threads as long as that gains a twentieth.
class climb {
 public:
  climb(unsigned first, unsigned most) : next_(std::min(first, most)), most_(most) {}

  /// How many to try now; 0: the best is known.
  unsigned next() const { return next_; }
  unsigned best() const { return best_; }

  void saw(double per_s) {
    bool const gained = per_s >= least_gain * best_per_s_;
    if (per_s > best_per_s_) {
      best_per_s_ = per_s;
      best_ = next_;
    }
    next_ = gained && next_ < most_ ? std::min(2 * next_, most_) : 0;
  }

 private:
  static constexpr double least_gain = 1.05;
  unsigned next_, most_, best_ = 0;
  double best_per_s_ = 0;
};

}  // namespace sluice::calibrate
