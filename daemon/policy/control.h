// SPDX-License-Identifier: Apache-2.0
// What the control and access sections of a policy mean: who may use a class, in words for the
// operator, and what deserves a second look.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "policy/site.h"

namespace sluice::policy {

/// A class without a rule is everybody's; uid 0 may use all. `groups` are all of the user's.
bool may_use(site const& s, std::string const& qos_class, uid_t uid, std::span<gid_t const> groups);

/// What the control and access sections mean, one sentence each.
std::vector<std::string> control_in_words(site const& s);

/// What is allowed but deserves a second look.
std::vector<std::string> warnings(site const& s);

/// The same of what matters only where several nodes share the capacities.
std::vector<std::string> cluster_warnings(site const& s);

}  // namespace sluice::policy
