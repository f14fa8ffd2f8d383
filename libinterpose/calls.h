// SPDX-License-Identifier: Apache-2.0
// The counted rows of calls.def as an enum and a table: the index of every per-call counter. Read
// by the stage, and by the command line to print names. Rows that are silent (no counter) do not
// appear.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/request.h"

namespace sluice {

struct call_row {
  std::string_view name;
  core::op op;
};

enum class call : std::uint16_t {
#define COUNTED(sym, o) sym,
#include "calls.def"
  count
};

inline constexpr unsigned call_count = static_cast<unsigned>(call::count);

inline constexpr call_row call_table[call_count] = {
#define COUNTED(sym, o) {#sym, core::op::o},
#include "calls.def"
};

}  // namespace sluice
