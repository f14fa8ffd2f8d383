// SPDX-License-Identifier: Apache-2.0
// Small files of state_dir, replaced whole.
#pragma once

#include <optional>
#include <string>

namespace sluice::node {

std::optional<std::string> read_state(std::string const& path);

/// False when it could not be written; the old one is still there then.
bool write_state(std::string const& path, std::string const& text);

}  // namespace sluice::node
