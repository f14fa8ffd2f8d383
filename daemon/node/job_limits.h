// SPDX-License-Identifier: Apache-2.0
// The limits of a job: the policy's channels, the user's own limits, and one granted channel per
// supply. Pure, except for finding paths.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "node/job.h"
#include "node/site_state.h"
#include "policy/compile.h"

namespace sluice::node {

struct job_limits {
  policy::compiled compiled;
  std::vector<fixed_channel> fixed;
  std::vector<std::string> granted;
  std::vector<std::string> left_out;  // targets of the policy that this node does not have
};

/// What a job asks for when it is made.
struct limit_wish {
  std::vector<std::string> own;
  std::vector<std::string> orders;           // durable@DIR, from the root
  std::vector<std::string> small;            // hints, hints@DIR
  std::map<std::string, std::string> costs;  // by text of the limit: what its cost file says
  bool monitor = false;
  bool policy_channels = true;
  std::map<std::string, policy::place> places = {};  // by path as written: where it lies, he says
  bool may_look = false;                             // his other paths are looked for
  std::string qos_class = {};
};

/// Throws a usage error for a limit that cannot be. `files` finds the policy's targets. Of another
/// path the job's user says himself where it lies: what he says concerns his own job only.
job_limits limits_of(site_state const& site, limit_wish const& wish,
                     policy::file_system const& files);

/// A sentence for each of the targets that is not there now.
std::vector<std::string> absent(std::span<policy::target_spec const> targets,
                                policy::file_system const& files);

}  // namespace sluice::node
