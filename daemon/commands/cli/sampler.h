// SPDX-License-Identifier: Apache-2.0
// The work of a running job in each interval. The `sluice run` that waits for the program reads the
// counters of its segment once per interval, and takes the differences to the last time.
// What stays true: the intervals are counted from the start without a gap, whenever we are called,
// and the differences add up to the growth of the counters. Nothing here disturbs the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "abi/segment.h"
#include "segment/sums.h"

namespace sluice::cli {

/// What was done of one op.
struct op_done : segment::call_sums {
  std::uint64_t took_ns = 0;  // in the calls, by their sample
};

/// What happened in one interval.
struct sample {
  std::size_t index = 0;                       // in intervals of the beginning; 0: the first
  std::size_t width = 1;                       // of the interval, in those of the beginning
  std::vector<op_done> op;                     // by core::op
  std::vector<segment::channel_sums> channel;  // as many as the segment has
};

class sampler {
 public:
  using listener = std::function<void(sample const&)>;

  /// Starts at `begin_ns` (monotonic): what the counters hold now does not count. After `most`
  /// intervals they become twice as long, and after as long again once more; 0: never.
  sampler(foreign<abi::segment> const& s, std::int64_t interval_ns, std::int64_t begin_ns,
          std::size_t most = 0);

  /// Is told every interval when it is over, in order.
  void listen(listener to) { listeners_.push_back(std::move(to)); }

  /// Of the beginning.
  double interval_s() const { return static_cast<double>(first_interval_ns_) / 1e9; }

  /// Looks, tells of the intervals that are over, and says when to be called next. May be called
  /// earlier: what was seen then belongs to the interval that is going on.
  std::int64_t look(std::int64_t now_ns);

  /// The program has ended: tells of the last interval, however short, if something is in it.
  void finish(std::int64_t now_ns);

 private:
  void collect();
  void tell();

  foreign<abi::segment> const& segment_;
  std::int64_t const first_interval_ns_;
  std::size_t const most_;
  std::size_t width_ = 1;  // of an interval, in those of the beginning
  std::int64_t interval_ns_;
  std::int64_t end_ns_;  // of the interval that is going on
  segment::sums seen_;
  std::vector<op_done> seen_op_;
  sample going_on_;
  std::vector<listener> listeners_;
};

}  // namespace sluice::cli
