// SPDX-License-Identifier: Apache-2.0
// Which start of this machine it is.
#pragma once

#include <string>

namespace sluice {

/// As the kernel writes it; empty when it does not say.
std::string boot_id();

/// Which CLOCK_BOOTTIME it is, of this start and this time namespace, in 16 characters: what was
/// kept of it counts with the same one alone. Empty when the kernel does not say.
std::string clock_id();

}  // namespace sluice
