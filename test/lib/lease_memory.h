// SPDX-License-Identifier: Apache-2.0
// Compares what a node keeps of its lease.
#pragma once

#include <algorithm>

#include "lease/child.h"

namespace sluice::test {

/// They differ in times at most.
inline bool is_same_state(lease::child_memory const& a, lease::child_memory const& b) {
  using entry = lease::child_memory::entry;
  auto const same = [](entry const& x, entry const& y) {
    return x.applied == y.applied && x.value == y.value;
  };
  return a.parent == b.parent && a.obeyed == b.obeyed &&
         a.parent_incarnation == b.parent_incarnation &&
         (a.parent != 0 || a.lend_until == b.lend_until) &&
         std::equal(a.supply.begin(), a.supply.end(), b.supply.begin(), b.supply.end(), same);
}

}  // namespace sluice::test
