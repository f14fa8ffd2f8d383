// SPDX-License-Identifier: Apache-2.0
// Many files synced at once: they share the commit of their file system's journal, and flushes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sluice::journal {

/// Does each of them: 0, or what one of those returned that did not return 0.
int all_at_once(std::vector<std::function<int()>> const& syncs);

/// What all programs have written, and no disk has yet, as the kernel counts it; 0: it does not
/// say.
std::uint64_t dirty_bytes();

}  // namespace sluice::journal
