// SPDX-License-Identifier: Apache-2.0
// Programs that are installed with this one, for work that needs libraries which this one does not
// load.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

/// Becomes it; find_beside() says where it is. Throws when that fails.
[[noreturn]] void become_beside(std::string const& name, std::vector<std::string> const& arguments);

}  // namespace sluice::cli
