// SPDX-License-Identifier: Apache-2.0
// The data of a loaded policy: targets with their capacity, QoS classes, channels, the controllers'
// settings, access to classes, the allocation algorithm. policy.h reads it; supply.h, control.h,
// change.h and doubts.h say what follows from it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/auto_capacity.h"
#include "policy/background.h"
#include "policy/control_settings.h"
#include "policy/limit.h"
#include "policy/requests.h"
#include "policy/roles.h"
#include "policy/target.h"

namespace sluice::policy {

/// Per resource: `metadata` in operations, `data` in bytes.
using resource_rates = std::map<std::string, rate>;

struct share {
  std::optional<rate> reservation;
  double weight = 1;
  std::optional<rate> limit;
  std::uint32_t priority = 0;  // larger first; of the algorithm `priority` alone
  std::optional<background_terms> background = {};  // its background work is held back
  std::string origin;
  std::optional<request_terms> requests = {};  // the reservation is what they need
};

struct qos_class {
  std::string name;
  std::map<std::string, std::map<std::string, share>> shares;  // target -> resource -> share
};

/// A whole policy, checked.
struct site {
  std::vector<target_spec> targets;
  std::map<std::string, resource_rates> capacity;  // by target; the most of one that is steered
  std::map<std::string, std::map<std::string, auto_capacity>> steered;  // by target and resource
  std::vector<qos_class> classes;
  std::vector<channel_spec> channels;
  std::vector<role_spec> roles;
  std::vector<request_spec> requests;
  control_settings control;
  access_rules access;
  std::string algorithm = "maxmin";
};

/// The channels of the policy plus the ceilings of a QoS class (empty: of none).
std::vector<channel_spec> channels_of(site const& site, std::string const& qos_class);

/// The background work that a class holds back, by target.
std::vector<background_terms> backgrounds_of(site const& s, std::string const& qos_class);

/// The requests that a class promises its jobs, by supply.
std::vector<request_terms> promises_of(site const& s, std::string const& qos_class);

}  // namespace sluice::policy
