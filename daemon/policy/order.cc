// SPDX-License-Identifier: Apache-2.0
#include "policy/order.h"

#include <fmt/format.h>

#include "policy/error.h"
#include "policy/suggest.h"

namespace sluice::policy {

bool parse_order(std::string_view word, std::string const& where) {
  if (word == "durable") return true;
  if (word == "ordered")
    throw usage_error(where + ": \"ordered\" is not built yet; \"durable\" is");
  throw usage_error(fmt::format("{}: \"{}\" is no order{}; \"durable\" is one", where, word,
                                did_you_mean(std::string(word), {"durable", "ordered"})));
}

target_spec parse_order_target(std::string_view text) {
  std::string const where = fmt::format("--order {}", text);
  auto const at = text.find('@');
  if (at == std::string_view::npos || at + 1 == text.size())
    throw usage_error(where + ": write durable@DIR");
  target_spec target;
  target.durable = parse_order(text.substr(0, at), where);
  target.path = target.name = std::string(text.substr(at + 1));
  target.origin = where;
  return target;
}

}  // namespace sluice::policy
