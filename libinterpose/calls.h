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

#define SLUICE_COUNTED_counted(row) row
#define SLUICE_COUNTED_silent(row)
#define CALL(sym, ret, params, args, o, place, bytes, point) ROW(sym, o)
#define OPENS(sym, ret, params, args, o, place, bytes, point) ROW(sym, o)
#define ERRNO(sym, ret, params, args, o, place, bytes, point) ROW(sym, o)
#define PAIR(sym, ret, params, args, o1, place1, bytes1, o2, place2, bytes2, point) ROW(sym, o1)
#define READS(sym, ret, params, args, stream, moved) ROW(sym, read)
#define WRITES(sym, ret, params, args, stream, moved) ROW(sym, write)
#define SPECIAL(sym, ret, params, args, counts, o) SLUICE_COUNTED_##counts(ROW(sym, o))
#define FRESH(...)
#define ALIAS(...)
#define VERSIONED(...)
#define VARIADIC(...)
#define BARE(...)

enum class call : std::uint16_t {
#define ROW(sym, o) sym,
#include "calls.def"
#undef ROW
  count
};

inline constexpr unsigned call_count = static_cast<unsigned>(call::count);

inline constexpr call_row call_table[call_count] = {
#define ROW(sym, o) {#sym, core::op::o},
#include "calls.def"
#undef ROW
};

#undef SLUICE_COUNTED_counted
#undef SLUICE_COUNTED_silent
#undef CALL
#undef OPENS
#undef ERRNO
#undef PAIR
#undef READS
#undef WRITES
#undef SPECIAL
#undef FRESH
#undef ALIAS
#undef VERSIONED
#undef VARIADIC
#undef BARE

}  // namespace sluice
