// SPDX-License-Identifier: Apache-2.0
// --limit, --policy, --class -> compiled limits.
#pragma once

#include "cli/options.h"
#include "policy/compile.h"

namespace sluice::cli {

policy::compile_input gather(limit_options const& options);
/// What of these limits can probably not do what was meant, as sentences for people.
std::vector<std::string> doubts_of(limit_options const& options);

policy::compiled compile_limits(limit_options const& options);

/// A rule in words: `"open" at most 1k/s, in /scratch (--limit …)`.
std::string describe(core::ruleset const& rules, unsigned rule, std::uint64_t rate_q40);

}  // namespace sluice::cli
