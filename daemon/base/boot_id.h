// SPDX-License-Identifier: Apache-2.0
// Which start of this machine it is: what was kept on CLOCK_BOOTTIME counts within one alone.
#pragma once

#include <string>

namespace sluice {

/// As the kernel writes it; empty when it does not say.
std::string boot_id();

}  // namespace sluice
