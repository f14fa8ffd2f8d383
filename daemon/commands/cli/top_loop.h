// SPDX-License-Identifier: Apache-2.0
// Asks a daemon for pictures repeatedly, and prints them where there is no screen.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "commands/cli/job_source.h"
#include "commands/cli/options.h"
#include "commands/cli/top_view.h"

namespace sluice::cli {

std::string clock_text();
top_choice choice_of(top_options const& options);

/// Prints `options.count` pictures (0: until killed) as tables or, with --json, one per line. A
/// daemon that goes away after the first one is waited for. The exit status.
int print_pictures(global_options const& global, top_options const& options, job_source& source);

}  // namespace sluice::cli
