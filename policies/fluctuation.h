// SPDX-License-Identifier: Apache-2.0
// Problem: requests at random times do not come evenly. If a stream is granted little more than its
// last cycle's use, half of the next cycle's requests queue, even if far more was promised to it.
// Idea: its average use and four standard deviations, counted from cycle to cycle, count as wanted
// too. What stays true: never more than the reservation; an even stream gets nothing extra; a
// stream that used nothing in two cycles is idle, and its whole promise is lent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/allocate.h"

namespace sluice::policies {

class fluctuation {
 public:
  /// Takes what each claim was served in the cycle that ends at `now_ns`. Claims in ascending order
  /// of job. Afterwards steady(i) is what claim i needs, so that few of its requests wait.
  void observe(std::span<claim const> claims, std::int64_t now_ns);

  /// Milli-tokens/s, at most the claim's reservation. 0: nothing is known, or it is idle.
  rate steady(std::size_t i) const { return steady_[i]; }

 private:
  struct memory {
    core::job_id job;
    rate last;        // served in the cycle before
    double mean;      // of served, over some 8 cycles
    double variance;  // likewise, of neighbouring cycles, so that a slow rise does not count
    unsigned idle;    // cycles without anything served
  };
  static void learn(memory& m, claim const& c);
  static rate need(memory const& m, claim const& c, double cycle_s);

  std::vector<memory> known_, next_;
  std::vector<rate> steady_;
  std::int64_t before_ns_ = 0;
};

}  // namespace sluice::policies
