// SPDX-License-Identifier: Apache-2.0
// What a policy shares out of a target: one row per resource, with the unit it is measured in.
#pragma once

#include <string_view>

#include "core/unit_kind.h"

namespace sluice::policy {

struct resource_row {
  std::string_view name;  // also a selector of calls
  core::unit_kind unit;
};

inline constexpr resource_row resource_rows[] = {
    {"data", core::unit_kind::bytes},
    {"metadata", core::unit_kind::ops},
    {"vops", core::unit_kind::vops},
};

/// Null: there is none of that name.
constexpr resource_row const* find_resource(std::string_view name) {
  for (auto const& row : resource_rows)
    if (row.name == name) return &row;
  return nullptr;
}

/// Supplies are named RESOURCE@TARGET; what is no resource counts operations.
constexpr core::unit_kind unit_of_supply(std::string_view supply) {
  resource_row const* const row = find_resource(supply.substr(0, supply.find_first_of(":@")));
  return row == nullptr ? core::unit_kind::ops : row->unit;
}

/// Of RESOURCE@TARGET.
constexpr std::string_view target_of_supply(std::string_view supply) {
  return supply.substr(supply.find('@') + 1);
}

}  // namespace sluice::policy
