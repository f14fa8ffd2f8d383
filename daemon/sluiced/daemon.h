// SPDX-License-Identifier: Apache-2.0
// One daemon from its configuration to its end: what is checked and given up before the role's
// loop runs, and in which order.
#pragma once

#include "runtime/command_line.h"

namespace sluice::sluiced {

/// The exit status. Throws sluice::error.
int run_daemon(runtime::command_line const& line);

}  // namespace sluice::sluiced
