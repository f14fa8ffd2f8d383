// SPDX-License-Identifier: Apache-2.0
// Programs that are installed with this one and do what it does not carry the libraries for.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

/// The path of such a program: beside this one, or in ../sbin, ../libexec/sluice, ../lib/sluice.
/// Empty when it is not there.
std::string find_beside(std::string const& name);

/// Becomes it. Throws when that fails.
[[noreturn]] void become_beside(std::string const& name, std::vector<std::string> const& arguments);

}  // namespace sluice::cli
