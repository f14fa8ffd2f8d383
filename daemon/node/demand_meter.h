// SPDX-License-Identifier: Apache-2.0
// From a job's shared memory to its report. look() is the border: the words may be garbage, so its
// results are bounded. demand_meter adds the looks of a report cycle up; it is pure, with time as
// an argument. What stays true: however many cycles a span has, a stream is reported to have been
// served at most what its curve paid, its burst and one large request, whatever the memory says.
// The curve of a watched job (--monitor) bounds nothing: it was served what it counted, as it was
// held back by nothing; but never more than the processors of this machine can do.
#pragma once

#include <cstdint>

#include "abi/segment.h"
#include "node/rates.h"
#include "segment/sums.h"

namespace sluice::node {

/// What the processors of this machine can do in a second, where no curve says less.
rate possible(unit_kind unit);
/// The same for a time, in operations, bytes or VOPs, with room for one large request.
double possible_in(unit_kind unit, double span_s);

/// One look at a channel.
struct sample {
  std::uint64_t served_units = 0;   // cumulative, modulo 2^64
  std::uint64_t waiting_units = 0;  // booked beyond what the curve has paid
  std::uint32_t waiters = 0;
  bool blocked = false;  // a request waits now
};

enum class look_depth : std::uint8_t {
  curve,    // who waits is estimated: whoever has booked more than the curve has paid
  threads,  // who waits is asked, in the shard of each thread
};

sample look(foreign<abi::segment> const& s, unsigned channel, look_depth depth,
            std::int64_t now_ns);

/// The same of a channel that only counts: nobody waits there, but one caller at least would while
/// the bucket of core/would_wait.h is full.
sample look_watched(foreign<abi::segment> const& s, unsigned channel, std::int64_t now_ns);

/// How many requests have waited so far, or would have waited; only its growth means something.
std::uint64_t waits_so_far(foreign<abi::segment> const& s, unsigned channel);

/// What a stream did in a report cycle.
struct figures {
  rate served = 0;
  std::uint64_t served_units = 0;  // the same as an amount: rates times spans would not add up
  std::uint64_t waiting = 0;       // milli-tokens
  std::uint32_t waiters = 0;
  std::uint32_t blocked_ppm = 0;
};

/// What a stream did since the daemon looks. They only grow.
struct amounts {
  std::uint64_t served = 0;  // tokens
  std::uint64_t delayed = 0, waited_ns = 0;
  std::uint64_t blocked_ns = 0;  // in which something waited, to a tick
  double beyond = 0;             // tokens, by rates: of a stream that nothing holds to its share
};

/// Adds these amounts up from the counters of the memory, which may be garbage: no more was served
/// than the bucket paid.
class tally {
 public:
  /// Counts from here.
  void start(segment::channel_sums const& now) { *this = {}, first_ = last_ = now; }
  /// The end of a cycle, in which it was served so much `beyond` its share.
  void add(figures const& f, std::int64_t span_ns, rate beyond = 0);
  /// A later look. `waits`: a request waits now, so what it was paid is not yet in the counters.
  void look(unit_kind unit, segment::channel_sums const& now, bool waits, std::uint32_t threads);
  amounts const& done() const { return done_; }

 private:
  segment::channel_sums first_, last_;
  std::uint64_t paid_units_ = 0;
  double beyond_ = 0;             // by rates: with what was taken in advance
  std::uint64_t in_advance_ = 0;  // of those, by threads that had not used it when nothing waited
  amounts done_;
};

class demand_meter {
 public:
  static constexpr std::int64_t quiet_ns = 25'000'000;
  /// The first look: counts from here.
  void start(sample const& s, std::uint64_t waits, std::int64_t now_ns);
  /// Each local cycle. `paying`: the rate of the curve now. True: the stream has begun to wait, or
  /// one that waited has been served nothing for `quiet_ns`: both are news that a parent should not
  /// hear only at the end of its cycle.
  bool tick(sample const& s, rate paying, std::int64_t now_ns);
  /// Ends a report cycle.
  figures take(unit_kind unit, std::uint64_t waits, std::int64_t now_ns);
  /// The figures so far, without ending the cycle.
  bool is_blocked() const { return has_blocked_ || last_.blocked; }
  std::int64_t since_ns() const { return begin_ns_; }

 private:
  std::uint64_t most_units(unit_kind unit, std::uint64_t paid) const;
  std::uint32_t blocked_ppm() const;
  bool falls_quiet(sample const& s, std::int64_t now_ns);

  sample last_;
  std::uint64_t begin_units_ = 0, begin_waits_ = 0;
  std::int64_t begin_ns_ = 0, quiet_since_ns_ = 0;
  rate paying_ = 0;                              // at the last look
  rate most_ = 0;                                // highest rate paid in this cycle
  std::int64_t looked_ns_ = 0, blocked_ns_ = 0;  // looks are not evenly spaced
  std::int64_t last_ns_ = 0;                     // of the last look
  bool has_blocked_ = false;
  bool was_blocked_ = false;       // in the cycle before
  bool is_quiet_ = false;          // said so already
  std::uint64_t ahead_units_ = 0;  // believed before the curve paid them
};

}  // namespace sluice::node
