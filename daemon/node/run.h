// SPDX-License-Identifier: Apache-2.0
// The node daemon: segments, measuring, curves, the local socket, and the conversation with the
// parent if there is one.
#pragma once

#include "control/config.h"
#include "control/services.h"

namespace sluice::node {

/// Runs until told to stop; the exit status.
int run(control::config const& config, control::services& services);

}  // namespace sluice::node
