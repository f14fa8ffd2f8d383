// SPDX-License-Identifier: Apache-2.0
// Which function runs which role.
#pragma once

#include "control/config.h"
#include "control/services.h"

namespace sluice::sluiced {

using run_function = int (*)(control::config const&, control::services&);

run_function function_of(control::role_kind role);

}  // namespace sluice::sluiced
