// SPDX-License-Identifier: Apache-2.0
// Where the library lies that belongs to this binary.
#pragma once

#include <string>

namespace sluice::segment {

/// In ../lib or ../lib/sluice of the running binary. Throws when in neither.
std::string find_library();

}  // namespace sluice::segment
