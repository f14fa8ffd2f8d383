// SPDX-License-Identifier: Apache-2.0
// What a forked process does first that goes on without exec and shall hold nothing of its maker's.
#pragma once

namespace sluice {

/// Closes all descriptors but that one, and makes 0 to 2 lead nowhere. Returns its new place.
int keep_only(int fd);

}  // namespace sluice
