// SPDX-License-Identifier: Apache-2.0
// Which function runs which role.
#pragma once

#include "runtime/config.h"
#include "runtime/services.h"

namespace sluice::sluiced {

using run_function = int (*)(runtime::config const&, runtime::services&);

run_function function_of(runtime::role_kind role);

}  // namespace sluice::sluiced
