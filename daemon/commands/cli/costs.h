// SPDX-License-Identifier: Apache-2.0
// What --cost says: which cost file belongs to which limit in VOPs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "policy/limit.h"

namespace sluice::cli {

/// One --cost, read.
struct given_costs {
  std::string said;    // as written
  std::string target;  // as --limit names it; empty: of each limit in VOPs
  std::shared_ptr<policy::cost_file const> costs;
};

/// Reads the files. Throws a usage error when one cannot be used.
std::vector<given_costs> read_costs(std::vector<std::string> const& said);

/// Gives each limit in VOPs its costs. Throws a usage error for two that fit one limit equally, and
/// for one that fits none.
void give_costs(std::vector<given_costs> const& costs, std::vector<policy::channel_spec>& channels);

}  // namespace sluice::cli
