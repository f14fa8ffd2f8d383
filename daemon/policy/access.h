// SPDX-License-Identifier: Apache-2.0
// The access section of a policy in words.
#pragma once

#include <string>

#include "policy/control_settings.h"

namespace sluice::policy {

/// Who may use a class that has this rule.
std::string people_in_words(access_rule const& rule);

}  // namespace sluice::policy
