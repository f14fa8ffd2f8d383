// SPDX-License-Identifier: Apache-2.0
// Helpers of tables beside base/quantity.h: the unit of a supply, and text of others.
#pragma once

#include <string>

#include "base/quantity.h"

namespace sluice::cli {

/// Supplies are named RESOURCE@TARGET; those of data count bytes.
bool counts_bytes(std::string const& supply);

/// Text of others for a terminal: what is not printable ASCII becomes `?`.
std::string printable(std::string text);

}  // namespace sluice::cli
