// SPDX-License-Identifier: Apache-2.0
// The values of `small`, in a policy and on the command line: what is done for small reads and
// writes.
#pragma once

#include <string>
#include <string_view>

#include "policy/compile.h"
#include "policy/target.h"

namespace sluice::policy {

/// Sets what `hints` or `close-to-open` means in the target. Throws a usage error that begins with
/// `where` for anything else.
void parse_small(std::string_view word, std::string const& where, target_spec& target);

/// One --small: `hints@DIR`, or `hints` for all files; then the path is empty.
target_spec parse_small_target(std::string_view text);
/// Adds what it says.
void add_small(std::string_view text, compile_input& input);

}  // namespace sluice::policy
