// SPDX-License-Identifier: Apache-2.0
// A job without a daemon that `sluice pause` stopped.
#pragma once

#include <string>

namespace sluice::cli {

bool is_paused(std::string const& run_dir, std::string const& job);

}  // namespace sluice::cli
