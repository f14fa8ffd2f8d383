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

}  // namespace sluice::cli
