// SPDX-License-Identifier: Apache-2.0
// What a program gets of a policy without a daemon, and whether that can be compiled: `sluice
// policy check` finds what `sluice run` would refuse, of every class.
#pragma once

#include <string>

#include "policy/compile.h"
#include "policy/site.h"
#include "policy/supply.h"

namespace sluice::policy {

/// The targets and roles of a policy, with the limits of a QoS class (empty: of none).
compile_input input_of(site const& s, std::string const& qos_class);

/// What a daemon adds for each supply: the channel whose curve follows the grants. It begins at
/// nothing and is opened before anybody can have attached.
channel_spec granted_channel(supply const& of);

/// Trees lie where the policy says, though they may be on other machines.
file_system as_written();
/// The same, but for those that are here. Mounts do not count: they are another matter elsewhere.
file_system as_found();

/// Of targets alone, which a daemon takes as well. Throws why they cannot be had together.
void check_targets(site const& s, file_system const& files);
/// Of each class, and of none. `file`: what messages call the policy.
void check_classes(site const& s, std::string const& file, file_system const& files);

}  // namespace sluice::policy
