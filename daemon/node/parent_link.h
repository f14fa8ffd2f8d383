// SPDX-License-Identifier: Apache-2.0
// A node and its parent: grants become a lease and the jobs' shares, measurements become reports.
// What stays true: before a report leaves, the curves hold the ends it promises and the lease file
// holds what it acknowledges. So prepare() comes first, then the curves, then send().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/held_lease.h"
#include "node/job_table.h"
#include "node/steering.h"
#include "runtime/services.h"
#include "runtime/uplink.h"
#include "verbs/views/overrides.h"
#include "wire/keys.h"
#include "wire/supply_list.h"

namespace sluice::node {

class parent_link {
 public:
  parent_link(runtime::config const& config, runtime::services& services, held_lease& lease,
              site_state const& site, job_table const& jobs);

  /// Takes in what came; a welcome is done with. The rest is the caller's: a policy first, because
  /// grants speak of its supplies.
  runtime::uplink::news hear(moment at);
  void apply(std::vector<wire::grant> const& grants, moment at);

  /// Why a report leaves now.
  enum class reason { none, acknowledge, early, cycle };
  /// Says hello where needed. `due`: the cycle has ended; `has_news`: not to wait for it.
  reason turn(bool due, bool has_news, std::int64_t cycle_ns, moment at);
  void announce_jobs(verbs::override_book const& overrides, moment at);
  /// `is_used`: by supply, something is counted on it though the policy may not name it.
  wire::report prepare(verbs::override_book const& overrides, steering& steered,
                       std::vector<bool> const& is_used, reason why, moment at);
  void send(wire::report const& r, moment at);

  /// Keys read again; an unchanged pair disturbs nobody.
  void use_keys(std::string const& path);

  bool is_heard(std::int64_t boot_ns) const;
  /// True: the grants in force name the share of each job.
  bool is_split() const { return is_split_; }
  /// What the parent has said a cycle is; 0: nothing usable.
  std::int64_t cycle_ns() const;
  std::string address() const { return up_.address(); }
  std::string const& name() const { return up_.parent_name(); }
  runtime::uplink& uplink() { return up_; }

 private:
  void welcome(wire::welcome const& w);
  void apply_one(wire::grant const& g, moment at);
  void apply_shares(wire::grant const& g, std::size_t supplies);
  void list_supplies(wire::report& r, std::vector<bool> const& is_used);
  void put_streams(wire::report& r, verbs::override_book const& overrides, moment at) const;

  runtime::config const& config_;
  runtime::services& services_;
  held_lease& lease_;
  site_state const& site_;
  job_table const& jobs_;
  runtime::uplink up_;
  wire::supply_list listed_;              // of the report that is being written
  std::unique_ptr<wire::security> keys_;  // read again since the start
  std::optional<wire::welcome> welcomed_;
  std::uint64_t applied_sequence_ = 0, granting_incarnation_ = 0;
  bool is_split_ = false;
  bool acknowledges_ = false;  // a value changed: report at once
  bool streams_due_ = true;    // else a report leaves them out
  std::int64_t announced_ns_ = 0, heard_ns_ = 0;
};

}  // namespace sluice::node
