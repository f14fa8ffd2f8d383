// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"

#include <algorithm>
#include <numeric>

namespace sluice {

namespace {

/// Letters to change, add or drop, neighbours to exchange.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> older, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j - 1] + (a[i - 1] != b[j - 1]), next[j - 1] + 1, row[j] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], older[j - 2] + 1);
    }
    older = row;
    row = next;
  }
  return row[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, std::vector<std::string> const& candidates) {
  if (word.empty() || word.size() > 40) return {};
  std::size_t best = word.size() < 4 ? 2 : 3;
  std::string const* nearest = nullptr;
  for (auto const& candidate : candidates) {
    std::size_t const d = distance(word, candidate);
    if (d < best) {
      best = d;
      nearest = &candidate;
    }
  }
  return nearest ? "; did you mean \"" + *nearest + "\"?" : std::string{};
}

std::string it_has(std::vector<std::string> const& names) {
  std::string list;
  for (auto const& name : names) list += (list.empty() ? "" : ", ") + name;
  return " (it has: " + (list.empty() ? "none" : list) + ")";
}

}  // namespace sluice
