// SPDX-License-Identifier: Apache-2.0
// Signals of the daemon, as a descriptor for its poll loop. They are blocked before the first
// ZeroMQ socket exists: its threads inherit the mask, and no call is interrupted.
#pragma once

#include <cstdint>

namespace sluice::runtime {

enum class order : std::uint8_t { none, stop, reload };

/// Blocks SIGTERM, SIGINT, SIGHUP in this thread and those it makes, ignores SIGPIPE and SIGXFSZ.
/// The descriptor is readable when one has come. Throws sluice_error.
int open_signals();

/// What the next signal means; none when there is no more.
order next_order(int signal_fd);

}  // namespace sluice::runtime
