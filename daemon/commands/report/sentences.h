// SPDX-License-Identifier: Apache-2.0
// A digest in words, for somebody who reads nothing else.
#pragma once

#include <string>
#include <vector>

#include "commands/report/digest.h"

namespace sluice::report {

/// The most important first.
std::vector<std::string> sentences_of(result const& r, digest const& d);

/// `run of hydro`: for headings.
std::string title_of(result const& r);

}  // namespace sluice::report
