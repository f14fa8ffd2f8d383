// SPDX-License-Identifier: Apache-2.0
// set, pause and resume of a daemon's job: the daemon does it, on its node or, asked at a cluster's
// socket, on all of them, and undoes it by itself when `--for` is over.
#pragma once

#include <optional>
#include <string>

#include "commands/cli/options.h"

namespace sluice::cli {

/// The exit status; none when the job is not a daemon's.
std::optional<int> steer_by_daemon(global_options const& global, std::string const& verb,
                                   std::string const& job, std::string const& assignment,
                                   std::string const& how_long);

}  // namespace sluice::cli
