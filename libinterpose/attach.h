// SPDX-License-Identifier: Apache-2.0
// Attach and detach. The library was loaded under the name <job directory>/libinterpose.so, with a
// file `segment` beside it; whatever is wrong with that file, the program runs as if we were not
// there.
#pragma once

#include <cstdint>

#include "abi/segment.h"

namespace sluice {

/// `no`: there is no job, or this was not the first time. `before_libc`: the job has extras, which
/// wait to stand before libc.
enum class attached : std::uint8_t { no, yes, before_libc };
/// Maps the segment and makes all that calls ask, once.
attached attach();

/// From now on nothing but the program's own calls. `mode` and `filter`: as prctl(2) has them.
abi::segment* enter_sandbox(long mode, long filter);
void leave_sandbox(abi::segment* s);  // the kernel refused: as before

}  // namespace sluice
