// SPDX-License-Identifier: Apache-2.0
// All that a node daemon holds, and what is done to it as a whole: put a policy in force, measure,
// write curves, report. The loop says when (node.cc), the local socket asks (verbs.cc).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "control/config.h"
#include "control/lease_file.h"
#include "control/policy_log.h"
#include "control/services.h"
#include "lease/child.h"
#include "node/asked_above.h"
#include "node/census.h"
#include "node/enforcer.h"
#include "node/epochs.h"
#include "node/escape.h"
#include "node/job_table.h"
#include "node/log_watch.h"
#include "node/overrides.h"
#include "node/site_state.h"
#include "node/uplink.h"
#include "wire/keys.h"

namespace sluice::node {

class state {
 public:
  state(control::config const& config, control::services& services);

  // ---- policy ----
  /// Throws what the parser throws; then nothing has changed.
  void use_policy(std::string const& text, control::policy_source const& source, moment at);
  void reload(moment at);

  // ---- measuring ----
  /// One look at every stream. True: one has begun to wait.
  bool measure(moment at);
  /// Ends a report cycle: figures are new.
  void end_cycle(moment at);
  /// What streams did so far, for counters and history.
  void count();
  /// Who lives, who is gone, who escapes; in steps.
  void watch(moment at);

  // ---- the scheduler ----
  /// Takes the jobs it has announced, lets go those it has not.
  void heed_scheduler(moment at);
  /// Null: there is no such announcement, or it cannot be (the log says why).
  job* begin_seat(std::string const& name, moment at);
  void end_seat(job& j);

  // ---- deciding ----
  void enforce(moment at);
  void expire_overrides(moment at);
  void keep_overrides();

  // ---- the parent ----
  void listen(moment at);
  /// A report if one may be sent and there is reason to. `due`: the cycle has ended.
  void talk(bool due, moment at);

  std::int64_t cycle_ns() const;
  bool has_parent() const { return up != nullptr; }
  void publish(moment at);
  /// Tells the history what was done since it was told last.
  /// `last`: of jobs that are going.
  void remember(moment at, bool last = false);
  void remember_ops(moment at, bool last);
  /// What jobs did that are gone, by supply.
  struct past_sums {
    double served = 0, delayed = 0;
  };
  past_sums before(unsigned supply) const {
    return supply < before_.size() ? before_[supply] : past_sums{};
  }

  control::config config;
  control::services& services;
  site_state site;
  job_table jobs;
  override_book overrides;
  enforcer rates;
  log_watch log;
  lease::child lease;
  control::lease_file lease_memory;
  std::unique_ptr<uplink> up;  // none: this node is its own controller
  asked_above asked;
  epochs gates;
  std::map<std::string, amounts> by_class;  // waits by QoS class, since the start
  std::uint64_t cycle = 0;
  bool has_news = false;  // a job came or went, a stream began to wait: not to wait for the cycle

 private:
  void start_policy(moment at);
  void recall_lease(moment at);
  void keep_lease();
  void set_own();
  void apply_grant(wire::grant const& g, moment at);
  void welcome(wire::welcome const& w);
  wire::report make_report(bool early, moment at);
  void announce_jobs(moment at);
  void count_heads(moment at);
  void bury(moment at);
  void count_last(moment at);
  void begin_escapes();
  void use_keys(control::config const& fresh);
  std::uint64_t counted_bytes(std::string const& folder) const;

  std::unique_ptr<wire::security> keys_;  // read again since the start
  std::optional<wire::welcome> welcomed_;
  std::uint64_t applied_sequence_ = 0, granting_incarnation_ = 0;
  bool is_split_ = false;
  bool acknowledges_ = false;  // a value changed: report at once
  bool streams_due_ = true;    // else a report leaves them out
  std::int64_t announced_ns_ = 0, begun_ns_ = 0, heard_ns_ = 0;
  census heads_;
  std::size_t counting_ = 0;  // job whose heads are counted
  std::int64_t counted_ns_ = 0;
  std::map<std::string, head_count> attached_;  // by folder
  escape_watch escapes_;
  std::int64_t heeded_ns_ = 0, started_ns_ = 0, swept_ns_ = 0;
  std::set<std::string> unreadable_;  // announcements that were told of
  bool lease_written_ = true;
  std::uint64_t refused_policy_ = 0;
  std::vector<past_sums> before_;
  std::set<std::string> classes_shown_;  // in the metrics
};

}  // namespace sluice::node
