// SPDX-License-Identifier: Apache-2.0
// `sluice top` on a terminal. The terminal is given back as it was, also when a signal ends us; a
// silent daemon is shown in the title, and the last picture stays.
#pragma once

#include "commands/cli/job_source.h"
#include "commands/cli/top_view.h"

namespace sluice::cli {

/// False when the terminal cannot be drawn on. Does not return when a signal ends it.
bool show_screen(job_source const& source, top_choice const& choice, double interval_s);

}  // namespace sluice::cli
