// SPDX-License-Identifier: Apache-2.0
// Problem and guarantees: see glob.h.
// Idea: one function matches one pattern element against one character and says how long the
// element is; the loop around it remembers the last `*` and how much text it has swallowed.
#include "glob.h"

#include <cstddef>

namespace sluice::core {
namespace {

constexpr std::size_t none = std::string_view::npos;

struct element {
  bool matches;
  std::size_t length;  // in the pattern
};

// Where a set that opens at `at` may have its closing bracket at the earliest: a bracket right
// after the opening, or after the negation, is a member.
std::size_t set_body(std::string_view pattern, std::size_t at) {
  std::size_t body = at + 1;
  if (body < pattern.size() && (pattern[body] == '!' || pattern[body] == '^')) ++body;
  return body;
}

element match_set(std::string_view pattern, std::size_t at, unsigned char c) {
  std::size_t const body = set_body(pattern, at);
  bool const negated = body != at + 1;
  bool found = false;
  std::size_t i = body;
  while (i == body || pattern[i] != ']') {
    unsigned char const low = static_cast<unsigned char>(pattern[i]);
    unsigned char high = low;
    if (pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = static_cast<unsigned char>(pattern[i + 2]);
      i += 2;
    }
    ++i;
    if (low <= c && c <= high) found = true;
  }
  return {found != negated, i + 1 - at};
}

// `last_bracket`: the last `]` of the pattern; it tells at once whether a set is closed.
element match_one(std::string_view pattern, std::size_t at, std::size_t last_bracket, char c) {
  char const p = pattern[at];
  if (p == '?') return {true, 1};
  if (p == '\\' && at + 1 < pattern.size()) return {pattern[at + 1] == c, 2};
  if (p == '[' && last_bracket != none && last_bracket > set_body(pattern, at))
    return match_set(pattern, at, static_cast<unsigned char>(c));
  return {p == c, 1};
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t last_bracket = none;
  for (std::size_t i = 0; i < pattern.size(); ++i)
    if (pattern[i] == ']') last_bracket = i;
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = none;  // the pattern after the last `*`
  std::size_t resume = 0;   // the text that `*` has not swallowed yet
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resume = t;
      continue;
    }
    if (p < pattern.size()) {
      element const e = match_one(pattern, p, last_bracket, text[t]);
      if (e.matches) {
        p += e.length;
        ++t;
        continue;
      }
    }
    if (star == none) return false;
    p = star;
    t = ++resume;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool path_match(std::string_view pattern, std::string_view path) {
  auto const slash = path.rfind('/');
  bool const whole = pattern.find('/') != std::string_view::npos;
  if (!whole && slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return glob_match(pattern, path);
}

}  // namespace sluice::core
