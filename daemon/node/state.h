// SPDX-License-Identifier: Apache-2.0
// All parts of a node daemon, each with its own data, and actions on several of them at once. The
// loop says when (run.cc), and the local socket asks (node_role.h).
#pragma once

#include <memory>
#include <string>

#include "epochs/node_epochs.h"
#include "node/accounts.h"
#include "node/announced_jobs.h"
#include "node/asked_above.h"
#include "node/backgrounds.h"
#include "node/enforcer.h"
#include "node/held_lease.h"
#include "node/job_result.h"
#include "node/job_table.h"
#include "node/job_watch.h"
#include "node/journal_watch.h"
#include "node/loop_time.h"
#include "node/pace.h"
#include "node/parent_link.h"
#include "node/profiles.h"
#include "node/run_folders.h"
#include "node/site_state.h"
#include "node/steering.h"
#include "runtime/config.h"
#include "runtime/policy_log.h"
#include "runtime/services.h"
#include "verbs/kept_answers.h"
#include "verbs/views/overrides.h"

namespace sluice::node {

/// So long a start waits for the parent's first policy.
inline constexpr std::int64_t first_policy_ns = 2'000'000'000;

class state {
 public:
  state(runtime::config const& config, runtime::services& services);

  // ---- policy and overrides ----
  /// Throws what the parser throws; then nothing has changed.
  void use_policy(std::string const& text, runtime::policy_source const& source, moment at);
  void reload(moment at);
  void expire_overrides(moment at);
  void keep_overrides(moment at);
  /// Writes all curves anew.
  void enforce(moment at);

  // ---- measuring ----
  /// One look at every stream. True: one has begun to wait.
  bool measure(moment at);
  /// Ends a report cycle: figures are new.
  void end_cycle(moment at);
  /// History and metrics.
  void tell(moment at);

  // ---- jobs ----
  /// Who lives, who is gone, who escapes; in steps.
  void watch(moment at);
  /// Takes the jobs the scheduler has announced, lets go those it has not.
  void heed_scheduler(moment at);
  /// Null: there is no such announcement, or it cannot be (the log says why).
  job* take_announced(std::string const& name, moment at);
  /// See announced_jobs.
  std::string why_waiting(std::string const& name) const { return announced_.why_waiting(name); }
  /// What the keeper of journals says, and what follows from it.
  void heed_journals(moment at);
  /// Cluster epochs: what jobs ask, and what the parent wants synced.
  void turn_gates(moment at);
  /// Keeps steps fast for a while: somebody waits, a job came or went, somebody has changed one.
  void stir(moment at) { stirred_ns_ = at.mono_ns; }
  /// A sentence of what a scheduler's job did.
  std::string outcome_of(job const& j);
  /// Somebody joins a job.
  void came(moment at);
  /// When to step next, as far as jobs and folders say.
  step_reasons reasons() const;

  // ---- the parent ----
  bool has_parent() const { return parent != nullptr; }
  void listen(moment at);
  /// A report if one may be sent and there is reason to. `due`: the cycle has ended.
  void talk(bool due, moment at);
  std::int64_t cycle_ns() const;

  runtime::config config;
  runtime::services& services;
  site_state site;
  job_table jobs;
  verbs::override_book overrides;
  loop_times loop;
  steering steered;
  backgrounds held_back;
  profiles promised;
  enforcer rates;
  journal_watch journals;
  held_lease lease;
  std::unique_ptr<parent_link> parent;  // none: this node is its own controller
  asked_above asked;
  verbs::kept_answers kept;  // to those who change overrides
  epochs::node_epochs gates;
  accounts sums;
  run_folders folders;
  std::uint64_t steps = 0;
  bool has_news = false;  // a job came or went, a stream began to wait: not to wait for the cycle

 private:
  void start_policy(moment at);
  std::vector<bool> used_supplies(moment at) const;
  void recall_overrides();
  void release_job(job& j);
  result_terms terms_of(job const& j) const;
  std::vector<job*> seen_last(std::vector<job*> ended, std::int64_t now_ns) const;
  void remove_ended(moment at);
  void sweep(moment at);
  void follow_journals();

  announced_jobs announced_;
  job_watch watch_;
  std::int64_t started_ns_ = 0, stirred_ns_ = -stir_ns;
  std::uint64_t refused_policy_ = 0, journal_changes_ = 0;
};

}  // namespace sluice::node
