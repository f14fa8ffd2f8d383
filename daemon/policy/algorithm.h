// SPDX-License-Identifier: Apache-2.0
// The algorithms that a policy may name.
#pragma once

#include <string_view>

namespace sluice::policy {

/// What policies/algorithms.def says of them; policies/allocate.h has the functions.
struct algorithm_row {
  std::string_view name;
  bool is_ready;
  std::string_view purpose;
};
inline constexpr algorithm_row algorithm_rows[] = {
#define ALGORITHM(symbol, name, is_ready, purpose) {name, is_ready, purpose},
#include "policies/algorithms.def"
};

}  // namespace sluice::policy
