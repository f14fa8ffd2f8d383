// SPDX-License-Identifier: Apache-2.0
// The node daemon: segments, measuring, curves, the local socket, and the conversation with the
// parent if there is one.
#pragma once

#include "runtime/config.h"
#include "runtime/services.h"

namespace sluice::node {

/// Runs until told to stop; the exit status.
int run(runtime::config const& config, runtime::services& services);

}  // namespace sluice::node
