// SPDX-License-Identifier: Apache-2.0
// The last hour of every job at every supply: its demand, grant and use, and how long it waited, in
// single seconds for ten minutes and in tens of seconds for the hour. The loop looks and puts;
// readers in other threads copy one row at a time, so that nobody waits for a reader.
// What stays true: the amounts of a row's points, the unfinished one included, add up to what was
// put; at most `most_rows` rows of about 42 KB each, whatever jobs there are; a row goes an hour
// after its job. Time is an argument.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/unit_kind.h"
#include "runtime/fair_rows.h"

namespace sluice::runtime {

/// Amounts and means of an interval; NaN: not known. Of the demand: more than was granted.
struct history_point {
  double served = 0;                         // amount
  float delayed = 0;                         // amount: requests that waited, when they had
  float waited_s = 0;                        // amount: all threads added
  float blocked_s = 0;                       // amount: time in which a request waited
  float demand = 0, grant = 0, waiting = 0;  // means; of the first two per second
  float paused_s = 0;                        // amount: time in which somebody had paused the job
  float beyond = 0;                          // amount: served beyond the grant, as nothing held it
  float limit = std::numeric_limits<float>::quiet_NaN();  // of a job, the last; NaN: none
};

/// Whose figures they are. A row without a job is of a class, one without a class too of a supply.
struct history_name {
  std::string job, user, qos_class, supply;
  uid_t uid = 0;
  core::unit_kind unit = core::unit_kind::ops;
};

/// What a stream did since the look before.
struct history_look {
  std::string_view job, qos_class, supply;
  uid_t uid = 0;
  core::unit_kind unit = core::unit_kind::ops;
  history_point did = {};
};

/// Who reads: an operator sees all jobs, anybody the classes and supplies.
struct history_reader {
  bool sees_all = false;
  bool sees_own = false;
  uid_t uid = 0;
  bool may_see(history_name const& n) const {
    return n.job.empty() || sees_all || (sees_own && uid == n.uid);
  }
};

struct history_row {
  history_name name;
  bool is_live = false;   // was put at the last look
  double limit = 0;       // of a job, at the last look; NaN: none
  double capacity = 0;    // of a supply; 0: of something else
  std::string why;        // of a supply whose capacity is steered: a sentence
  double end_unix_s = 0;  // of the last point
  double interval_s = 1;
  std::vector<history_point> points;  // oldest first
  history_point open;                 // the interval that goes on
};

class history {
 public:
  static constexpr std::size_t fine_points = 600, coarse_points = 360, fine_per_coarse = 10;
  static constexpr std::size_t most_rows = 1024;
  static constexpr std::int64_t kept_ns = 3600ll * 1'000'000'000;

  explicit history(owner_lookup owner_of = {}) : fair_(std::move(owner_of)) {}

  // ---- the loop ----
  /// A look at all streams: begin(), put() each, put_supply() each, end(). Any number of looks a
  /// second; what was put is spread evenly over the time since the last one.
  void begin(std::int64_t now_ns, double unix_s);
  void put(history_look const& look);
  /// `why`: how a capacity came about that nobody wrote; else empty.
  void put_supply(std::string_view supply, core::unit_kind unit, double capacity,
                  std::string_view why = {});
  void end();
  /// Since the look before; 0 at the first.
  double passed_s() const { return passed_s_; }

  // ---- any thread ----
  std::size_t size() const;  // numbers of rows that were ever used
  /// False: no such row, or not for this reader. `points`: none are copied but the last when false.
  bool read(std::size_t number, history_reader const& who, bool fine, bool points,
            history_row& out) const;
  /// Streams that had no room at the last look.
  std::size_t left_out() const;

 private:
  struct ring {
    std::vector<history_point> points;
    std::size_t next = 0;
    void add(history_point const& p, std::size_t most);
    void copy(std::vector<history_point>& out) const;
    history_point last() const;
  };
  struct sum {
    double served = 0, delayed = 0, waited_s = 0, blocked_s = 0, paused_s = 0, beyond = 0;
    double demand = 0, grant = 0, waiting = 0;  // times seconds
    float limit = std::numeric_limits<float>::quiet_NaN();
    double seconds = 0, bounded_seconds = 0;  // the latter: with a demand that is known
    void add(history_point const& did, double seconds);
    void add(sum const& later);
    history_point point() const;
  };
  struct series {
    history_name name;
    double capacity = 0;
    std::string why;
    std::int64_t put_ns = 0;  // last; 0: the row is free
    std::uint64_t look = 0;   // in which it was put last
    history_point did;        // at that look
    sum going_on, coarse_sum;
    ring fine, coarse;
  };

  /// Of a class or a supply in one look; the names are its own.
  struct total {
    std::string qos_class, supply;
    core::unit_kind unit = core::unit_kind::ops;
    history_point did;
    history_look look() const { return {{}, qos_class, supply, 0, unit, did}; }
  };

  total& total_of(std::string_view qos_class, std::string_view supply, core::unit_kind unit);
  series* row_of(history_look const& look);
  series* make(history_look const& look, std::string key);
  void take(series& s, history_look const& look) const;
  void spread(series& s, std::int64_t from_ns) const;
  static void close_second(series& s, std::int64_t second);

  mutable std::mutex lock_;  // of all below
  std::vector<series> rows_;
  std::unordered_map<std::string, std::size_t> index_;
  std::unordered_map<std::string, total> totals_;  // of this look
  std::string key_;                                // scratch
  std::int64_t now_ns_ = 0, before_ns_ = 0;
  double unix_s_ = 0, passed_s_ = 0;
  std::uint64_t look_ = 0;
  std::size_t left_out_ = 0, left_out_now_ = 0;
  fair_rows fair_;
};

}  // namespace sluice::runtime
