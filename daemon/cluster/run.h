// SPDX-License-Identifier: Apache-2.0
// The role of cluster and relay.
#pragma once

#include "control/config.h"
#include "control/services.h"

namespace sluice::cluster {

/// Until SIGTERM. The exit status.
int run(control::config const& config, control::services& services);

}  // namespace sluice::cluster
