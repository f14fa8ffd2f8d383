// SPDX-License-Identifier: Apache-2.0
// Reads a policy as the operator writes it. Nothing is guessed: an unknown key, a wrong unit and an
// undefined name are errors with file, line, column and a suggestion.
#pragma once

#include <string>
#include <string_view>

#include "policy/site.h"

namespace sluice::policy {

/// `name` is what messages call the text. Throws a usage error `name:line:column: …`.
site parse_policy(std::string_view text, std::string const& name);

/// The text of a file, for those who pass it on.
std::string read_policy_text(std::string const& file);

site read_policy(std::string const& file);

}  // namespace sluice::policy
