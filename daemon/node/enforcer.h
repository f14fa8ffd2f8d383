// SPDX-License-Identifier: Apache-2.0
// From policy, overrides, lease and measurements to the curves of all jobs of this node. It chooses
// who decides: the parent while its grant is in force, or the node alone when it is orphaned or has
// no parent. The policy says what an orphan may do (safe, keep, open).
// What stays true: the curves of a supply never pay more together than the node may use at that
// moment. `keep` and `open` are exceptions, which the operator has asked for. The curves of watched
// jobs (--monitor) are not counted, for they hold nothing back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lease/child.h"
#include "node/clock.h"
#include "node/curves.h"
#include "node/job_table.h"
#include "node/site_state.h"
#include "policies/allocate.h"
#include "verbs/views/overrides.h"

namespace sluice::node {

/// How a supply stands on this node, for people and metrics.
struct supply_standing {
  rate usable = 0;
  rate granted = 0;  // sum of the curves
  bool is_orphan = false;
};

class enforcer {
 public:
  /// `has_parent`: false makes this node the controller of the whole capacity.
  explicit enforcer(bool has_parent) : has_parent_(has_parent) {}

  /// After a change of policy: the algorithm begins anew.
  void use(site_state const& site);

  /// The parent's split of what it granted is in stream::granted of the jobs; false: it sent none.
  void set_split(bool is_split) { is_split_ = is_split; }

  /// What was held before a restart, by supply: for orphans that keep it.
  void recall_kept(std::vector<rate> kept) { kept_ = std::move(kept); }

  /// Writes every curve of every granted channel.
  /// `in_force`: what a node without a parent divides, by supply.
  void apply(site_state const& site, job_table const& jobs, verbs::override_book const& overrides,
             lease::child const& child, std::span<rate const> in_force, moment now);

  std::vector<supply_standing> const& standing() const { return standing_; }

 private:
  struct entry {
    job* who;
    stream* what;
  };
  struct table {  // one supply
    std::vector<entry> entries;
    std::vector<share_claim> claims;
    std::vector<phases> wanted;
    share_supply terms;
    phase_times times;
    bool alone = false;
    rate usable = 0;
  };

  void collect(site_state const& site, job_table const& jobs,
               verbs::override_book const& overrides);
  void set_terms(site_state const& site, lease::child const& child, std::span<rate const> in_force,
                 moment now);
  void set_times(table& t, unsigned supply, lease::child const& child, moment now,
                 policy::orphan_mode mode) const;
  void share(std::int64_t now_ns);
  void share_lone(policies::allocator* by, std::int64_t now_ns);
  void share_watched(std::int64_t now_ns);
  std::vector<curve_change> changes_of(unsigned supply, site_state const& site);
  void write(site_state const& site, job_table const& jobs, std::int64_t now_ns);
  static void write_fixed(job& j, verbs::job_overrides const* changed, std::int64_t now_ns);

  bool has_parent_;
  bool is_split_ = false;
  std::unique_ptr<policies::allocator> algorithm_;
  std::unique_ptr<policies::allocator>
      as_if_asked_;            // with watched jobs that want all they can get
  std::vector<table> tables_;  // by supply
  std::vector<rate> kept_;     // by supply: the last value granted, for orphans that keep it
  std::vector<supply_standing> standing_;
};

/// What the class, and people since, say of a job on a supply, with what was measured.
share_claim claim_of(job const& j, stream const& s, policy::site const& site,
                     supply_slot const& slot, verbs::job_overrides const* overrides,
                     bool has_parent);

/// The stream of the job on a supply that is shared; null: it has none.
template <class Job>
auto* stream_on(Job& j, site_state const& site, std::string const& supply) {
  for (auto& s : j.streams)
    if (site.supplies()[s.supply].of.name() == supply && site.supplies()[s.supply].is_shared())
      return &s;
  return static_cast<decltype(&j.streams[0])>(nullptr);
}

/// The class in force for a job.
std::string const& class_in_force(job const& j, verbs::job_overrides const* overrides);

}  // namespace sluice::node
