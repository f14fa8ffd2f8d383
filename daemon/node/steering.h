// SPDX-License-Identifier: Apache-2.0
// The supplies of this node whose capacity nobody wrote, and those of VOPs that were measured.
// Where the node divides alone it steers the ones (policies/steer.h) and watches the others
// (policies/drift.h); below a parent it only counts how fast calls are, and the report tells.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "node/job_table.h"
#include "node/loop_time.h"
#include "node/site_state.h"
#include "policies/drift.h"
#include "policies/steer.h"
#include "verbs/views/overrides.h"
#include "verbs/views/views.h"

namespace sluice::node {

class steering {
 public:
  steering(job_table const& jobs, site_state const& site, verbs::override_book const& overrides,
           loop_time& time, bool has_parent)
      : jobs_(jobs), site_(site), overrides_(overrides), time_(time), has_parent_(has_parent) {}

  /// After a change of policy. Capacities stay where they are, within the new bounds.
  void use();
  /// There are such supplies.
  bool is_any() const { return is_any_; }
  /// The end of a cycle: the figures of streams are new.
  void look(std::int64_t now_ns);
  /// What of this supply is divided.
  rate in_force(unsigned supply) const;
  std::vector<rate> in_force() const;  // by supply
  /// Calls since the last take(), for the parent.
  policies::call_speeds take(unsigned supply);
  /// None: its capacity is written, or steered elsewhere.
  std::optional<verbs::steered_view> view(unsigned supply) const;
  /// None: nothing was measured, or it is watched elsewhere.
  std::optional<verbs::drift_view> drift(unsigned supply) const;

 private:
  struct part {
    bool is_steered = false, is_measured = false;
    policies::steer by;
    policies::drift drift;
    policies::call_speeds seen;  // since take(), or since the last look
  };
  policies::steer_look figures(unsigned supply) const;

  job_table const& jobs_;
  site_state const& site_;
  verbs::override_book const& overrides_;
  loop_time& time_;
  bool has_parent_;
  bool is_any_ = false;
  std::vector<part> parts_;  // by supply
};

}  // namespace sluice::node
