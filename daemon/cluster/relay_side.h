// SPDX-License-Identifier: Apache-2.0
// The face of a relay towards its parent. Pure, like the arbiter it belongs to: reports merge the
// reports of the children (sums, and histograms of demand, so that a tree allocates as a flat
// controller would), grants become the amount that the arbiter may give, and the meaning of each
// job's amount.
//
// What stays true: a grant message is acknowledged only when no child of ours holds more of a job
// than the messages since then allow; a value only when the children have given up the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/arbiter.h"
#include "lease/child.h"

namespace sluice::cluster {

/// What the parent is told of jobs below: of all, or only of those that it was not told of.
std::vector<wire::job_entry> jobs_below(roster const& r, bool all);

class relay_side {
 public:
  relay_side(arbiter& below, std::uint64_t incarnation);

  /// After a reboot, or when nobody knows whether it was one.
  void booted(time_ns now) { up_.booted(now); }
  /// After a restart of the daemon: supplies by the index of the plan in force.
  void remember(lease::child_memory const& m, time_ns now) { up_.remember(m, now); }
  void plan_changed();
  void on_welcome(wire::welcome const& w);
  void on_grant(wire::grant const& g, time_ns now);

  /// Before the arbiter settles: what it may give, and whether the parent's amounts rule.
  void serve(time_ns now);
  /// After it settled: a report is due (a cycle is over, a demand turned, an answer is owed).
  bool wants_to_report(time_ns now, bool demand_turned);
  wire::report const& make_report(time_ns now);
  void sent(time_ns now);  // the report left
  void lost_parent() {     // connection or address changed
    awaiting_ = false;
    streams_due_ = true;
  }

  bool has_parent() const { return parent_ != 0; }
  bool is_silent(time_ns now) const { return up_.is_silent(now); }
  bool is_orphan(time_ns now) const { return up_.is_orphan(now); }
  time_ns due() const;  // when wants_to_report() may next say yes without a message
  lease::child const& up() const { return up_; }
  lease::child& up() { return up_; }

 private:
  void list_supplies(time_ns now);
  void merge_streams(time_ns now);
  void cut_streams(time_ns now);
  std::vector<std::uint64_t> owners() const;
  lease::grant const& as_ours(wire::grant const& g);

  arbiter& below_;
  lease::child up_;
  std::uint64_t parent_ = 0;    // its name as a hash
  std::uint64_t life_ = 0;      // its incarnation
  std::uint64_t sequence_ = 0;  // of the newest grant message
  std::uint64_t window_ = 0;    // acknowledged once children hold no more than allowed since it
  std::uint64_t applied_ = 0;
  bool awaiting_ = false;  // a report is unanswered
  bool at_once_ = false;
  bool streams_due_ = true;  // else a report that only acknowledges leaves the streams out
  time_ns reported_at_ = 0;
  time_ns next_report_ = 0;
  lease::grant mapped_;
  wire::report report_;
  wire::supply_list listed_;                 // as the report lists them
  std::vector<policies::leaf> only_;         // beside report_.streams: what the first node said
  std::vector<policies::demand_bins> sums_;  // of those that have one
  std::vector<std::uint32_t> sum_of_;        // beside report_.streams: place in sums_
  std::vector<std::uint32_t> slots_;         // scratch by flow: 1 + place in report_.streams
};

}  // namespace sluice::cluster
