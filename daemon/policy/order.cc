// SPDX-License-Identifier: Apache-2.0
#include "policy/order.h"

#include <fmt/format.h>

#include "policy/error.h"
#include "policy/suggest.h"

namespace sluice::policy {

void parse_order(std::string_view word, std::string const& where, target_spec& target) {
  if (word != "durable" && word != "ordered")
    throw usage_error(fmt::format("{}: \"{}\" is no order{}; \"durable\" and \"ordered\" are",
                                  where, word,
                                  did_you_mean(std::string(word), {"durable", "ordered"})));
  target.durable = true;
  target.ordered = word == "ordered";
}

target_spec parse_order_target(std::string_view text) {
  std::string const where = fmt::format("--order {}", text);
  auto const at = text.find('@');
  if (at == std::string_view::npos || at + 1 == text.size())
    throw usage_error(where + ": write durable@DIR or ordered@DIR");
  target_spec target;
  parse_order(text.substr(0, at), where, target);
  target.path = target.name = std::string(text.substr(at + 1));
  target.origin = where;
  return target;
}

}  // namespace sluice::policy
