// SPDX-License-Identifier: Apache-2.0
// Limits that are valid but probably do not do what was meant: one sentence each, which begins with
// the place of the limit. All of these warnings are here.
#pragma once

#include <string>
#include <vector>

#include "policy/compile.h"
#include "policy/site.h"

namespace sluice::policy {

/// Of limits alone, on whatever machine.
std::vector<std::string> doubts(std::vector<channel_spec> const& channels);

/// Of the channels of a policy, which is written once for many: what they leave out. Not of a
/// limit that somebody types, who reads the same in the manual and not before each program.
std::vector<std::string> gaps(std::vector<channel_spec> const& channels);

/// Of the shares of classes: those of a capacity that nobody gave.
std::vector<std::string> idle_shares(site const& site);

/// Of a node where all targets are: what a daemon adds for supplies may be too much there. At most
/// one.
std::vector<std::string> doubts_of_granted(site const& site);

/// Of trees on this machine: those of a file system that is never limited.
std::vector<std::string> doubts(compile_input const& input, file_system const& files);

/// Of a policy file from which a program takes limits without a daemon: there may be none.
std::vector<std::string> doubts(site const& site, std::string const& file,
                                std::string const& qos_class);

}  // namespace sluice::policy
