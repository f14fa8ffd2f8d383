// SPDX-License-Identifier: Apache-2.0
// The clock of the stage: the kernel's own function, which it maps into every process. The symbol
// `clock_gettime` may be another library's, such as one that shows its program another date: it may
// stand still, take locks, or make calls that come here again.
#pragma once

#include <cstdint>

namespace sluice {

/// CLOCK_MONOTONIC.
std::int64_t now_ns();
/// The same by ticks of about 134 ms.
[[gnu::hot]] std::uint32_t coarse_tick();

/// From now on by a system call: a program forbids itself to read the counter of the processor.
void ask_kernel_for_time();

}  // namespace sluice
