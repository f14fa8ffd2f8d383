// SPDX-License-Identifier: Apache-2.0
#include "policy/small.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"

namespace sluice::policy {

namespace {

small_word const& find_word(std::string_view word, std::string const& where) {
  auto const found = std::find_if(std::begin(small_words), std::end(small_words),
                                  [&](small_word const& w) { return w.word == word; });
  if (found != std::end(small_words)) return *found;
  std::vector<std::string> known;
  for (small_word const& w : small_words) known.emplace_back(w.word);
  throw usage_error(fmt::format("{}: unknown mode \"{}\"{}; known: {}", where, word,
                                did_you_mean(std::string(word), known), fmt::join(known, ", ")));
}

}  // namespace

std::vector<std::string_view> modes_of(small_targets const& small, unsigned t) {
  std::vector<std::string_view> out;
  for (small_word const& w : small_words)
    if ((small.*w.targets >> t & 1) != 0) out.push_back(w.word);
  return out;
}

void parse_small(std::string_view word, std::string const& where, target_spec& target) {
  target.*find_word(word, where).sets = true;
}

target_spec parse_small_target(std::string_view text) {
  std::string const where = fmt::format("--small {}", text);
  auto const at = text.find('@');
  small_word const& word = find_word(text.substr(0, at), where);
  if (!word.users_may)
    throw usage_error(fmt::format(
        "{}: it changes what other processes see of a file, so only a policy says it: write "
        "\"small\": \"{}\" for a target, and use --policy FILE",
        where, word.word));
  target_spec target;
  target.*word.sets = true;
  if (at != text.npos) {
    target.path = target.name = std::string(text.substr(at + 1));
    if (target.path.empty())
      throw usage_error(fmt::format("{0}: write {1}, or {1}@DIR", where, word.word));
  }
  target.origin = where;
  return target;
}

void add_small(std::string_view text, compile_input& input) {
  target_spec target = parse_small_target(text);
  if (!target.path.empty()) {
    input.targets.push_back(std::move(target));
    return;
  }
  input.hints_everywhere |= target.hints;
  input.buffers_everywhere |= target.buffers;
  input.strict_everywhere |= target.is_strict;
}

}  // namespace sluice::policy
