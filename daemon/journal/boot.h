// SPDX-License-Identifier: Apache-2.0
// Which start of this machine it is. While it runs, home files in the page cache are ahead of every
// journal; after it was restarted they may be behind.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace sluice::journal {

/// All zero when the kernel does not say.
std::array<std::uint8_t, 16> boot_id();

/// False also when one of the two is not known.
bool is_this_boot(std::span<std::uint8_t const, 16> id);

}  // namespace sluice::journal
