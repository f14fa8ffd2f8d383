// SPDX-License-Identifier: Apache-2.0
// The figures of this node's jobs: measured in each step, and passed to the history and to the
// metrics. Jobs that are gone stay in the sums.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "node/call_times.h"
#include "node/clock.h"
#include "node/enforcer.h"
#include "node/job_table.h"
#include "node/loop_time.h"
#include "node/steering.h"
#include "runtime/metric_table.h"
#include "verbs/views/overrides.h"

namespace sluice::runtime {
class dashboard;
}

namespace sluice::node {

class accounts {
 public:
  accounts(job_table const& jobs, site_state const& site, verbs::override_book const& overrides,
           loop_times& loop, bool has_parent)
      : jobs_(jobs), site_(site), overrides_(overrides), loop_(loop), has_parent_(has_parent) {}

  /// One look at every stream.
  struct signs {
    bool has_begun_to_wait = false, is_waiting = false;
  };
  signs measure(std::int64_t now_ns);
  /// Ends a report cycle: the figures of streams are new.
  void end_cycle(std::int64_t now_ns);
  /// What streams did so far, for counters and history.
  void count();
  /// Tells the history what was done since it was told last.
  void remember(runtime::dashboard* board, steering const& steered, moment at) {
    tell(board, steered, at, {});
  }
  /// Before these jobs go: all that they did until now, however long ago the last cycle was. The
  /// cycle of other jobs goes on.
  void count_last(std::span<job* const> gone, runtime::dashboard* board, steering const& steered,
                  moment at);
  /// A job goes, and was counted.
  void keep_sums(job const& gone);
  /// After a change of policy: the sums of supplies whose number is another's now are gone.
  void use(runtime::metric_table& m);
  /// Puts the figures of supplies, jobs and calls into the metrics.
  void publish(runtime::metric_table& m, std::vector<supply_standing> const& standing,
               steering const& steered, std::int64_t now_ns);
  std::uint64_t cycles() const { return cycles_; }

 private:
  struct past_sums {
    double served = 0, delayed = 0, beyond = 0;
  };
  static signs measure(job& j, look_depth depth, std::int64_t now_ns);
  static void look_at_waits(job& j);
  static void end_cycle(job& j, std::int64_t now_ns);
  void look_at_times(job& j);
  void count_hints(job& j);
  /// `gone`: jobs that go now. Without them only what is due.
  void tell(runtime::dashboard* board, steering const& steered, moment at,
            std::span<job* const> gone);
  void tell_ops(runtime::dashboard& board, moment at, std::span<job* const> gone);
  void count(job& j);
  void publish_supplies(runtime::metric_table& m, std::vector<supply_standing> const& standing,
                        steering const& steered) const;
  void publish_hints(runtime::metric_table& m) const;
  void publish_jobs(runtime::metric_table& m);
  void publish_streams(runtime::metric_table& m) const;
  std::string const& class_of(job const& j) const;

  job_table const& jobs_;
  site_state const& site_;
  verbs::override_book const& overrides_;
  loop_times& loop_;
  bool has_parent_;
  std::uint64_t cycles_ = 0;
  std::map<std::string, amounts> by_class_;  // waits by QoS class, since the start
  call_times times_;
  told_hints hints_ = {};                // of all jobs, since the start
  told_gathered gathered_ = {};          // the same
  told_buffered buffered_ = {};          // the same
  std::vector<past_sums> before_;        // of jobs that are gone, by supply
  std::set<std::string> classes_shown_;  // in the metrics
};

}  // namespace sluice::node
