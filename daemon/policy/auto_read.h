// SPDX-License-Identifier: Apache-2.0
// Reads a capacity that is steered from a policy.
#pragma once

#include <string>

#include "policy/auto_capacity.h"
#include "policy/cost_file.h"
#include "policy/reading.h"

namespace sluice::policy {

struct auto_reading {
  rate most;
  auto_capacity how;
};

/// `costs` of the target; null: it has none. Throws what `in` throws.
auto_reading read_auto(reading const& in, node const& n, std::string const& resource,
                       cost_file const* costs, std::string const& path);

}  // namespace sluice::policy
