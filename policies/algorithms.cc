// SPDX-License-Identifier: Apache-2.0
// The table of algorithms, made of the rows of algorithms.def.
#include <algorithm>

#include "policies/allocate.h"

namespace sluice::policies {

#define ALGORITHM(symbol, name, ready, purpose) std::unique_ptr<allocator> make_##symbol();
#include "policies/algorithms.def"

std::span<algorithm const> algorithms() {
  static constexpr algorithm table[] = {
#define ALGORITHM(symbol, name, ready, purpose) {name, make_##symbol},
#include "policies/algorithms.def"
  };
  return table;
}

algorithm const* find_algorithm(std::string_view name) {
  auto const all = algorithms();
  auto const found =
      std::find_if(all.begin(), all.end(), [&](algorithm const& a) { return a.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace sluice::policies
