// SPDX-License-Identifier: Apache-2.0
// --limit, --policy, --class -> compiled limits.
#pragma once

#include <string>

#include "commands/cli/options.h"
#include "policy/compile.h"

namespace sluice::cli {

/// Says on standard error what cannot do what was probably meant. `no_daemon`: why no daemon is
/// asked what a QoS class has; for the refusal of a class without a policy.
policy::compiled compile_limits(limit_options const& options, std::string const& no_daemon);

/// Says that of limits which a daemon has taken.
void warn_of_limits(limit_options const& options);

/// A rule in words: `"open" at most 1k/s, in /scratch (--limit …)`.
std::string describe(core::ruleset const& rules, unsigned rule, std::uint64_t rate_q40);

}  // namespace sluice::cli
