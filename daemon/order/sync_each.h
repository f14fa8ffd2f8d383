// SPDX-License-Identifier: Apache-2.0
// Many files synced at once: they share the commit of their file system's journal, and flushes.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::order {

/// Each of them is on its disk: 0, or the errno of one that is not. All are tried.
int sync_each(std::vector<int> const& fds);

/// What all programs have written, and no disk has yet, as the kernel counts it; 0: it does not
/// say.
std::uint64_t dirty_bytes();

}  // namespace sluice::order
