// SPDX-License-Identifier: Apache-2.0
// Background work of a program that a class holds back, by its roles: what a policy says of it, and
// what follows. policies/tail_latency.h decides how much it may do.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/limit.h"
#include "policy/reading.h"

namespace sluice::policy {

struct role_spec;

/// What policies/background.def says of the algorithms.
struct background_row {
  std::string_view name;
  bool is_ready;
  std::string_view purpose;
};
inline constexpr background_row background_rows[] = {
#define BACKGROUND(symbol, name, is_ready, purpose) {name, is_ready, purpose},
#include "policies/background.def"
};

/// Kinds of background work, the most urgent first: the key that names a role, and the role where
/// none is named.
struct background_kind {
  char const* key;
  char const* usual_role;
};
inline constexpr background_kind background_kinds[] = {
    {"flush", "flush"}, {"low", "compaction-low"}, {"high", "compaction-high"}};
inline constexpr unsigned background_kind_count = 3;

/// As written in a share.
struct background_spec {
  unsigned algorithm = 0;                                // row
  std::optional<rate> foreground, floor;                 // none: follow from the total
  std::array<std::string, background_kind_count> roles;  // empty: there is none
};

/// The keys of a share that are about this.
reading::names background_keys();

/// None: the share names no algorithm. Throws a usage error with file, line and column.
std::optional<background_spec> read_background(reading const& in, node const& n,
                                               std::string const& resource,
                                               std::vector<role_spec> const& roles,
                                               std::string const& path);

}  // namespace sluice::policy
