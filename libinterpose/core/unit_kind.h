// SPDX-License-Identifier: Apache-2.0
// What a limit counts. One row per unit: what its bucket counts in, and how people and JSON name
// it. A token is one operation, one byte or one virtual IOP.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/cost_table.h"
#include "core/service_curve.h"

namespace sluice::core {

enum class unit_kind : std::uint8_t { ops, bytes, vops };

struct unit_row {
  std::string_view name;  // in JSON
  std::string_view noun;
  std::string_view example;  // a rate
  std::uint64_t token;       // bucket units of one
  std::uint64_t counted;     // the same in the counters of a stage
};

inline constexpr unit_row unit_table[] = {
    {"ops", "operations", "200k/s", op_units, 1},
    {"bytes", "bytes", "20GiB/s", 1, 1},
    {"vops", "virtual IOPs (VOPs)", "5k/s", milli_per_vop, milli_per_vop},
};
inline constexpr unsigned unit_count = sizeof unit_table / sizeof *unit_table;

/// Of any value, garbage included.
constexpr unit_row const& row_of(unit_kind unit) {
  return unit_table[static_cast<unsigned>(unit) % unit_count];
}

/// Bucket units of one token.
constexpr std::uint64_t token_units(unit_kind unit) { return row_of(unit).token; }

/// Tokens in what the counters of a stage say.
constexpr double counted_tokens(unit_kind unit, std::uint64_t amount) {
  return static_cast<double>(amount) / static_cast<double>(row_of(unit).counted);
}

/// The unit of a name in JSON; false: there is none.
constexpr bool find_unit(std::string_view name, unit_kind& unit) {
  for (unsigned i = 0; i < unit_count; ++i)
    if (unit_table[i].name == name) return unit = static_cast<unit_kind>(i), true;
  return false;
}

}  // namespace sluice::core
