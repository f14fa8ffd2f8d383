// SPDX-License-Identifier: Apache-2.0
// The last hour of every job by op: how many operations, bytes, and seconds in the calls. Points
// are single seconds for ten minutes and tens of seconds for the hour. `history` has the grants;
// this has the operations they were used for. The loop looks and puts, readers in other threads
// copy one row at a time.
// What stays true: at most `most_rows` rows of about 8 KB each, whatever jobs there are, and none
// for an op that a job never made; the amounts of the points add up to what was put. Time is an
// argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/unit_kind.h"
#include "runtime/history.h"

namespace sluice::runtime {

/// Of the last: in the calls themselves, all threads added, by their sample.
enum class op_unit : std::uint8_t { operations, bytes, seconds };

/// What a job did of one op since the look before.
struct op_look {
  std::string_view job, qos_class, op;
  uid_t uid = 0;
  op_unit unit = op_unit::operations;
  double amount = 0;
};

struct op_row {
  history_name name;  // no supply
  std::string op;
  op_unit unit = op_unit::operations;
  bool is_live = false;   // the job was there at the last look
  double end_unix_s = 0;  // of the last point
  double interval_s = 1;
  std::vector<double> done;  // amounts, oldest first; NaN: not known
  double open = 0;           // of the interval that goes on
};

class op_history {
 public:
  static constexpr std::size_t most_rows = 4096;
  static constexpr std::int64_t look_ns = 1'000'000'000;  // a look reads 200 KB of each job

  explicit op_history(owner_lookup owner_of = {}) : fair_(std::move(owner_of)) {}

  // ---- the loop ----
  bool is_due(std::int64_t now_ns) const { return now_ns - now_ns_ >= look_ns; }
  /// A look at all jobs: begin(), put() for each of their ops, end(). What was put is spread evenly
  /// over the time since the look before. Of an op of which nothing was ever done no row is made.
  void begin(std::int64_t now_ns, double unix_s);
  void put(op_look const& look);
  void end();
  /// Between begin() and end(): since the look before.
  double passed_s() const { return static_cast<double>(now_ns_ - before_ns_) / 1e9; }

  // ---- any thread ----
  std::size_t size() const;  // numbers of rows that were ever used
  bool read(std::size_t number, history_reader const& who, bool fine, op_row& out) const;
  /// Ops of jobs that had no room at the last look.
  std::size_t left_out() const;

 private:
  struct ring {
    std::vector<double> points;
    std::size_t next = 0;
    void add(double p, std::size_t most);
    void copy(std::vector<double>& out) const;
  };
  struct series {
    history_name name;
    std::string op;
    op_unit unit = op_unit::operations;
    std::int64_t used_ns = 0;  // when something was done last; 0: the row is free
    std::uint64_t look = 0;    // in which it was put last
    double amount = 0;         // of this look
    double going_on = 0, coarse_sum = 0;
    unsigned known = 0, coarse_known = 0;  // looks in this second; seconds in these ten
    ring fine, coarse;
  };

  series* row_of(op_look const& look);
  series* make(op_look const& look);
  void spread(series& s, std::int64_t from_ns) const;
  void close_second(series& s, std::int64_t second) const;

  mutable std::mutex lock_;  // of all below
  std::vector<series> rows_;
  std::unordered_map<std::string, std::size_t> index_;
  std::string key_;  // scratch
  std::int64_t now_ns_ = 0, before_ns_ = 0;
  double unix_s_ = 0;
  std::uint64_t look_ = 0;
  std::size_t left_out_ = 0, left_out_now_ = 0;
  fair_rows fair_;
};

}  // namespace sluice::runtime
