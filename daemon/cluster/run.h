// SPDX-License-Identifier: Apache-2.0
// The role of cluster and relay.
#pragma once

#include "runtime/config.h"
#include "runtime/services.h"

namespace sluice::cluster {

/// Until SIGTERM. The exit status.
int run(runtime::config const& config, runtime::services& services);

}  // namespace sluice::cluster
