// SPDX-License-Identifier: Apache-2.0
// Cost files for a terminal, for programs, and as a page.
#pragma once

#include <string>
#include <vector>

#include "commands/calibrate/digest.h"

namespace sluice::calibrate {

/// Tables; several files stand beside each other.
std::string text_of(std::vector<digest> const& all);

/// An array, one object per file (README.md has the keys).
std::string json_of(std::vector<digest> const& all);

/// One page that needs no network; see commands/report/page.h.
std::string page_of(std::vector<digest> const& all, std::string const& nonce);

/// The words at the end of a calibration.
std::string summary_of(policy::cost_file const& c, std::string const& file);

}  // namespace sluice::calibrate
