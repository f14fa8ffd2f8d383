// SPDX-License-Identifier: Apache-2.0
// Holds back the background work of one job on one target: looks at the counters of its roles, asks
// policies/tail_latency.h, and writes the limits of the roles. The same for `sluice run` without a
// daemon and for the node daemon: each has a keeper for a job that it made.
// What stays true: a limit of a role ends by itself within a second (its curve has a lease), so
// whoever keeps it may die; no role has more than the job, whose own limit is passed as well; a job
// that does no I/O costs a look that somebody else does anyway.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "abi/segment.h"
#include "base/foreign.h"
#include "policies/tail_latency.h"
#include "policy/background.h"
#include "segment/curve.h"
#include "segment/sums.h"

namespace sluice::background {

inline constexpr std::int64_t look_every_ns = 20'000'000;
inline constexpr std::int64_t idle_every_ns =
    120'000'000;  // of whoever has nothing else to wake for

class keeper {
 public:
  /// None: the job has no such channels, or only counts.
  static std::optional<keeper> of(foreign<abi::segment> const& s,
                                  policy::background_terms const& terms);

  policy::background_terms const& terms() const { return terms_; }
  /// Looks if it is due. `most`: what the job may have now. `limit`: writes curves of that segment.
  /// True: the sign is another one.
  bool look(foreign<abi::segment> const& s, policies::rate most, std::int64_t now_ns,
            segment::curve_writer const& limit);
  /// Bytes were moved, or waited for, within the last second.
  bool is_busy(std::int64_t now_ns) const { return now_ns - moved_ns_ < busy_ns; }
  /// Of one that is busy.
  std::int64_t due_ns() const { return looked_ns_ + look_every_ns; }

  policies::tail_sign sign() const { return by_.sign(); }
  /// Nanoseconds so far, by sign.
  std::array<std::int64_t, policies::tail_sign_count> const& spent_ns() const { return spent_ns_; }

  /// One kind of work, with what it may do and does now.
  struct part {
    std::string channel;  // data:flush@scratch; empty: there is none
    unsigned number = 0;
    policies::rate limit = policies::unbounded;
    policies::rate moved = 0;  // in the last look
    bool waits = false;
  };
  std::array<part, policies::background_count> const& parts() const { return parts_; }

  /// {"supply", "algorithm", "sign", "why", "seconds", "limits"}.
  nlohmann::ordered_json row() const;

 private:
  static constexpr std::int64_t busy_ns = 1'000'000'000;
  explicit keeper(policy::background_terms terms) : terms_(std::move(terms)) {}
  policies::tail_look figures(foreign<abi::segment> const& s, std::int64_t span_ns);
  void write(foreign<abi::segment> const& s, unsigned kind, std::int64_t now_ns,
             segment::curve_writer const& limit);

  policy::background_terms terms_;
  policies::tail_latency by_;
  unsigned foreground_ = 0;  // channel
  std::array<part, policies::background_count> parts_;
  segment::channel_sums before_;
  std::array<segment::channel_sums, policies::background_count> before_of_;
  std::array<std::int64_t, policies::background_count> lease_ns_ = {};  // 0: no limit is written
  std::array<std::int64_t, policies::tail_sign_count> spent_ns_ = {};
  std::int64_t looked_ns_ = 0, moved_ns_ = 0;
};

/// What a `sluice run` that keeps its job's background work says of it lies beside the segment.
std::string told_path(std::string const& segment_path);
/// Null: nothing was told. Only of one's own job.
nlohmann::ordered_json told(std::string const& segment_path);

/// Tells when a sign has changed, at most once a second.
class teller {
 public:
  void look(std::string const& segment_path, std::vector<keeper> const& keepers, bool is_news,
            std::int64_t now_ns);

 private:
  std::int64_t told_ns_ = 0;
  bool has_news_ = true;
};

}  // namespace sluice::background
