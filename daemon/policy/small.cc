// SPDX-License-Identifier: Apache-2.0
#include "policy/small.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/suggest.h"

namespace sluice::policy {

namespace {
constexpr char const hints[] = "hints", close_to_open[] = "close-to-open";
}

void parse_small(std::string_view word, std::string const& where, target_spec& target) {
  if (word != hints && word != close_to_open)
    throw usage_error(
        fmt::format("{}: \"{}\" is nothing for small I/O{}; \"{}\" and \"{}\" are", where, word,
                    did_you_mean(std::string(word), {hints, close_to_open}), hints, close_to_open));
  (word == hints ? target.hints : target.gathers) = true;
}

target_spec parse_small_target(std::string_view text) {
  std::string const where = fmt::format("--small {}", text);
  auto const at = text.find('@');
  target_spec target;
  parse_small(text.substr(0, at), where, target);
  if (target.gathers)
    throw usage_error(fmt::format(
        "{}: it changes what other processes see of a file, so only a policy says it", where));
  if (at != text.npos) {
    target.path = target.name = std::string(text.substr(at + 1));
    if (target.path.empty()) throw usage_error(where + ": write hints, or hints@DIR");
  }
  target.origin = where;
  return target;
}

void add_small(std::string_view text, compile_input& input) {
  target_spec target = parse_small_target(text);
  if (target.path.empty())
    input.hints_everywhere = true;
  else
    input.targets.push_back(std::move(target));
}

}  // namespace sluice::policy
