// SPDX-License-Identifier: Apache-2.0
// A daemon's explanation of one of its jobs: class, grant and its reasons, waiting requests.
#pragma once

#include <string>

#include "commands/cli/daemon.h"
#include "commands/cli/options.h"

namespace sluice::cli {

/// The exit status; throws the daemon's error.
int explain_by_daemon(global_options const& global, daemon_at const& daemon,
                      std::string const& job);

/// Prints how the capacities that the job shares came about, where nobody wrote them. Nothing when
/// no daemon answers at once: who looks at counters does not ask for more.
void print_capacities(global_options const& global, std::string const& job);

}  // namespace sluice::cli
