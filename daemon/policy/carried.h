// SPDX-License-Identifier: Apache-2.0
// A policy names cost files that lie beside it, and is then passed on to machines where they do
// not. So its text carries them: where the name of a file stood stands what the file says, as one
// string. What stays true: lines keep their numbers, and a policy that names no file is unchanged.
#pragma once

#include <string>

namespace sluice::policy {

struct cost_file;

/// What a cost file says, without what only people read, in one line.
std::string carried_text(cost_file const& costs);

/// The text of `file` with its cost files in it, without what only people read. Throws a usage
/// error when one cannot be read.
std::string carry_costs(std::string text, std::string const& file);

/// Whether the "cost" of a target is what a file says, not the name of a file.
inline bool is_carried(std::string const& cost) { return cost.starts_with('{'); }

}  // namespace sluice::policy
