// SPDX-License-Identifier: Apache-2.0
// A result for a terminal, and its summary for programs.
#pragma once

#include <string>
#include <vector>

#include "commands/report/result.h"

namespace sluice::report {

/// Sentences, a small picture of the ops over time, tables. `columns`: of the terminal.
std::string text_of(std::vector<result> const& results, unsigned columns);

/// Figures and sentences as JSON (documented in README.md): an array, one object per result.
std::string summary_of(std::vector<result> const& results);

}  // namespace sluice::report
