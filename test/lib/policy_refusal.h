// SPDX-License-Identifier: Apache-2.0
// What is said of a policy that is refused.
#pragma once

#include <string>

#include "lib/refusal.h"
#include "policy/policy.h"

namespace sluice::test {

/// "accepted" when it was not. The file is called p.
inline std::string refusal(std::string const& text) {
  return refusal_of([&] { policy::parse_policy(text, "p"); });
}

}  // namespace sluice::test
