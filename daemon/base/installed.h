// SPDX-License-Identifier: Apache-2.0
// The paths of the library that belongs to this binary, and of the programs installed with it.
#pragma once

#include <string>

namespace sluice {

/// The folder of the running binary.
std::string own_folder();

/// In ../lib or ../lib/sluice of the running binary. Throws when in neither.
std::string find_library();

/// A program beside this one, or in ../sbin, ../libexec/sluice, ../lib/sluice. Empty when it is not
/// there.
std::string find_beside(std::string const& name);

}  // namespace sluice
