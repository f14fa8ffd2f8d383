// SPDX-License-Identifier: Apache-2.0
// What `order` may be, in a policy and on the command line.
#pragma once

#include <string>
#include <string_view>

#include "policy/compile.h"

namespace sluice::policy {

/// True for `durable`. Throws a usage error that begins with `where` for anything else, also for
/// `ordered`, which is not built yet.
bool parse_order(std::string_view word, std::string const& where);

/// One --order: `durable@DIR`.
target_spec parse_order_target(std::string_view text);

}  // namespace sluice::policy
