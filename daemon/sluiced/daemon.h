// SPDX-License-Identifier: Apache-2.0
// One daemon from its configuration to its end: the checks before the role's loop runs, the
// privileges given up, and their order.
#pragma once

#include "runtime/command_line.h"

namespace sluice::sluiced {

/// The exit status. Throws sluice::error.
int run_daemon(runtime::command_line const& line);

}  // namespace sluice::sluiced
