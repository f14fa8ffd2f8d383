// SPDX-License-Identifier: Apache-2.0
// A policy as the operator writes it: targets with their capacity, QoS classes, channels, the
// controllers' settings, access to classes, the allocation algorithm. Nothing is guessed: an
// unknown key, a wrong unit and an undefined name are errors with file, line, column and a
// suggestion.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/compile.h"
#include "policy/control.h"
#include "policy/limit.h"
#include "policy/supply.h"

namespace sluice::policy {

/// Per resource: `metadata` in operations, `data` in bytes.
using resource_rates = std::map<std::string, rate>;

struct share {
  std::optional<rate> reservation;
  double weight = 1;
  std::optional<rate> limit;
  std::uint32_t priority = 0;  // larger first; of the algorithm `priority` alone
  std::string origin;
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
  control_settings control;
  access_rules access;
  std::string algorithm = "maxmin";
};

/// What policies/algorithms.def says of them; policies/allocate.h has the functions.
struct algorithm_row {
  std::string_view name;
  bool is_ready;
  std::string_view purpose;
};
inline constexpr algorithm_row algorithm_rows[] = {
#define ALGORITHM(symbol, name, is_ready, purpose) {name, is_ready, purpose},
#include "policies/algorithms.def"
};

/// `name` is what messages call the text. Throws a usage error `name:line:column: …`.
site parse_policy(std::string_view text, std::string const& name);

/// The text of a file, for those who pass it on.
std::string read_policy_text(std::string const& file);

site read_policy(std::string const& file);

/// The channels of the policy plus the ceilings of a QoS class (empty: of none).
std::vector<channel_spec> channels_of(site const& site, std::string const& qos_class);

}  // namespace sluice::policy
