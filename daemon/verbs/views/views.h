// SPDX-License-Identifier: Apache-2.0
// The data of a daemon that people see, as values: its jobs, their shares of each supply, supplies
// and nodes. A role (node, relay, cluster) fills these; rows.h and sentences.h write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/unit_kind.h"

namespace sluice::verbs {

using rate = std::uint64_t;  // milli-tokens per second
inline constexpr rate unbounded = ~rate{0};

/// A supply whose capacity nobody wrote.
struct steered_view {
  rate found = 0;  // what steering finds right; in force unless it is a shadow
  rate least = 0, most = 0;
  std::int64_t wanted_ns = 0;    // what a call may take
  std::uint32_t may_be_ppm = 0;  // of the calls may take longer
  std::uint32_t slow_ppm = 0;    // of the calls took longer lately
  std::string sign;              // what it does, as policies/steer.h names it
  bool is_shadow = false;
};

/// Whether a file system still gives what its costs were measured to be.
struct drift_view {
  std::string sign;  // as policies/drift.h names it
  rate given = 0;    // when it was busy; 0: it was not
  rate floor = 0, most = 0;
};

/// A job on one supply.
struct stream_view {
  std::string supply;  // metadata@scratch
  core::unit_kind unit = core::unit_kind::ops;
  rate served = 0;                // in the last cycle
  rate granted = 0;               // what it may use
  std::uint64_t waiting = 0;      // milli-tokens asked for and not served
  std::uint32_t waiters = 0;      // threads
  std::uint32_t blocked_ppm = 0;  // share of the last cycle in which a request waited
  bool is_blocked = false;        // a request waited, so its demand has no bound
  rate limit = unbounded, reservation = 0;
  std::uint32_t weight = 1000;  // thousandths
  rate would_delay = 0;         // where a policy is not enforced: served beyond what it may use
  std::uint32_t nodes = 1;
  rate overbooked = 0;  // all reservations in use together, where that is above …
  rate bookable = 0;    // … what they may come to
  rate capacity = 0;
  std::optional<steered_view> steered;
  std::optional<drift_view> drift;
};

/// A process of a job that nobody meters, or several.
struct escape_view {
  std::uint32_t pid = 0;
  std::string name, why;
};

/// A channel of a job with a fixed rate.
struct fixed_view {
  std::string name;
  core::unit_kind unit = core::unit_kind::ops;
  rate now = 0;
  bool is_own = false;  // the user's, given when it was started
};

struct job_view {
  std::uint32_t uid = 0;
  std::string name, qos_class;
  std::uint32_t nodes = 1;
  std::uint64_t processes = 0;
  std::uint32_t foreign = 0;        // of these, in other pid namespaces
  std::uint32_t foreign_found = 0;  // of these, looked at from outside
  std::vector<escape_view> escapes;
  bool is_watched = false;                // --monitor: nothing holds it back
  std::vector<std::string> not_governed;  // supplies that the policy named after it began
  std::vector<stream_view> streams;
};

/// What only `explain` tells.
struct job_details {
  std::vector<std::string> deciders;  // who says what it may use, in sentences
  bool has_policy = true, is_enforced = true;
  std::vector<fixed_view> fixed;
  std::vector<std::string> left_out;  // targets that this node does not have
};

struct supply_view {
  std::string name;
  rate capacity = 0, budget = 0, granted = 0, served = 0;
  std::optional<rate> demand;  // none: unbounded
  core::unit_kind unit = core::unit_kind::ops;
  std::optional<steered_view> steered = {};
  std::optional<drift_view> drift = {};
};

/// A node or relay, with what it has and used of each supply.
struct node_view {
  std::string name, role, state;  // state: live, silent, gone
  double age_s = 0;
  std::size_t jobs = 0;
  struct amounts {
    std::string supply;
    rate served = 0, granted = 0;
  };
  std::vector<amounts> supplies;
};

/// A bounded demand, as the allocation takes it (policies/README.md).
constexpr double demand_factor = 1.02;

}  // namespace sluice::verbs
