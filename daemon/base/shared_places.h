// SPDX-License-Identifier: Apache-2.0
// Places that users share, so that none keeps the others out: each has so many at most, and the
// last ones are for who has none. Pure.
#pragma once

#include <cstddef>

namespace sluice {

struct shared_places {
  std::size_t all = 0, of_an_owner = 0, kept = 0;

  /// Whether one more is there for an owner (base/owners.h) who has `his` of the `taken` ones.
  constexpr bool has_one(std::size_t taken, std::size_t his) const {
    return his < of_an_owner && taken < all - (his == 0 ? 0 : kept);
  }
};

}  // namespace sluice
