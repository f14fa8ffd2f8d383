// SPDX-License-Identifier: Apache-2.0
#include "policy/access.h"

#include <fmt/format.h>

namespace sluice::policy {

std::string people_in_words(access_rule const& rule) {
  std::string out;
  if (!rule.users.empty()) out = fmt::format("users {}", fmt::join(rule.users, ", "));
  if (!rule.groups.empty())
    out += fmt::format("{}groups {}", out.empty() ? "" : " and ", fmt::join(rule.groups, ", "));
  return out.empty() ? "nobody but root" : out;
}

}  // namespace sluice::policy
