// SPDX-License-Identifier: Apache-2.0
#include "policy/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

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

void parse_stream(std::string_view word, std::string const& where, target_spec& target) {
  static constexpr std::string_view words[] = {"process", "job", "thread", "path"};
  auto const* const at = std::find(std::begin(words), std::end(words), word);
  if (at == std::end(words))
    throw usage_error(
        fmt::format("{}: \"{}\" is no stream{}; process, job, thread and path are", where, word,
                    did_you_mean(std::string(word), {"process", "job", "thread", "path"})));
  target.stream = static_cast<order_stream>(at - words);
}

target_spec parse_order_target(std::string_view text) {
  std::string const where = fmt::format("--order {}", text);
  auto const at = text.find('@');
  if (at == std::string_view::npos || at + 1 == text.size())
    throw usage_error(where + ": write durable@DIR or ordered@DIR, or ordered:STREAM@DIR");
  target_spec target;
  std::string_view const word = text.substr(0, at);
  auto const colon = word.find(':');
  parse_order(word.substr(0, colon), where, target);
  if (colon != word.npos) parse_stream(word.substr(colon + 1), where, target);
  target.path = target.name = std::string(text.substr(at + 1));
  target.origin = where;
  return target;
}

}  // namespace sluice::policy
