// SPDX-License-Identifier: Apache-2.0
// Results as one page that needs nothing else: no network, no other file. The page forbids itself
// every source but its own style and script, so that nothing a result says can run.
#pragma once

#include <string>
#include <vector>

#include "commands/report/result.h"

namespace sluice::report {

/// One or several results, side by side. `nonce`: letters and digits nobody can guess.
std::string page_of(std::vector<result> const& results, std::string const& nonce);

/// The parts of the page that do not change.
extern char const page_style[];
extern char const page_script[];

}  // namespace sluice::report
