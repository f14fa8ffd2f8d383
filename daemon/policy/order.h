// SPDX-License-Identifier: Apache-2.0
// The values of `order` and `after`, in a policy and on the command line.
#pragma once

#include <string>
#include <string_view>

#include "policy/reading.h"
#include "policy/target.h"

namespace sluice::policy {

/// Sets what `durable` or `ordered` mean in the target. Throws a usage error that begins with
/// `where` for anything else.
void parse_order(std::string_view word, std::string const& where, target_spec& target);

/// The same for `process`, `job`, `thread` and `path`.
void parse_stream(std::string_view word, std::string const& where, target_spec& target);
std::string_view word_of(order_stream stream);

/// What `after` says of a target. Throws a usage error for what cannot be.
after_spec read_after(reading const& r, node const& n, std::string const& path);
/// The same in words, for `sluice policy check`.
std::string after_in_words(after_spec const& after);

/// One --order: `durable@DIR` or `ordered@DIR`, with `:STREAM` after the first word or not.
target_spec parse_order_target(std::string_view text);

}  // namespace sluice::policy
