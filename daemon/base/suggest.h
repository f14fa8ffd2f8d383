// SPDX-License-Identifier: Apache-2.0
// `did you mean …?` for everything a user can misspell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// `; did you mean "limit"?` when a candidate is near enough to `word`, else nothing.
std::string did_you_mean(std::string_view word, std::vector<std::string> const& candidates);

/// ` (it has: gold, bronze)`, of what has the names; `none` where there are none.
std::string it_has(std::vector<std::string> const& names);

}  // namespace sluice
