// SPDX-License-Identifier: Apache-2.0
// Results as one page that needs nothing else: no network, no other file. The page forbids itself
// every source but its own style and script, so that nothing a result says can run. Other commands
// put their own content into the same page.
#pragma once

#include <string>
#include <vector>

#include "commands/report/result.h"

namespace sluice::report {

/// One or several results, side by side. `nonce`: letters and digits nobody can guess.
std::string page_of(std::vector<result> const& results, std::string const& nonce);

/// Letters and digits that nobody who wrote the input can know. Throws a sluice error.
std::string make_nonce();

/// A page around `body`, with the definitions of its drawings; `title` is escaped here. `many`:
/// wide, for things side by side.
std::string page_around(std::string const& body, std::string const& title, bool many,
                        std::string const& nonce);

/// The parts of the page that do not change.
extern char const page_style[];
extern char const page_script[];

}  // namespace sluice::report
