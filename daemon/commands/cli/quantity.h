// SPDX-License-Identifier: Apache-2.0
// Helpers of tables beside base/quantity.h: text of others.
#pragma once

#include <string>

#include "base/quantity.h"

namespace sluice::cli {

/// Text of others for a terminal: what is not printable ASCII becomes `?`.
std::string printable(std::string text);

}  // namespace sluice::cli
