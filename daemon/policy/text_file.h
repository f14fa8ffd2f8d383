// SPDX-License-Identifier: Apache-2.0
// The text of a file that people write and name: a policy, a cost file, a configuration.
#pragma once

#include <string>

namespace sluice::policy {

/// Throws a usage error `FILE: why`; of an empty file, too. What is larger than json_tree.h takes
/// is cut after that.
std::string read_text(std::string const& file);

}  // namespace sluice::policy
