// SPDX-License-Identifier: Apache-2.0
#include "commands/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/error.h"
#include "base/suggest.h"

namespace sluice::trace {

namespace {

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    auto const end = words.find(' ');
    if (words.substr(0, end) == word) return true;
    if (end == words.npos) return false;
    words.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

std::optional<unsigned> find_op(std::string_view name) {
  for (unsigned i = 0; i < op_count; ++i)
    if (op_table[i].name == name) return i;
  for (unsigned i = 0; i < op_count; ++i)
    if (has_word(op_table[i].aliases, name)) return i;
  return std::nullopt;
}

std::string op_advice(std::string_view name) {
  std::vector<std::string> names;
  for (auto const& row : op_table) names.emplace_back(row.name);
  std::string const near = did_you_mean(name, names);
  return near.empty() ? fmt::format("; known are: {}", fmt::join(names, " ")) : near;
}

std::string trace::fact(std::string_view key) const {
  for (auto const& [name, value] : facts)
    if (name == key) return value;
  return {};
}

std::vector<std::string> trace::jobs() const {
  std::vector<std::string> names;
  for (auto const& c : columns)
    if (std::find(names.begin(), names.end(), c.job) == names.end()) names.push_back(c.job);
  if (names.empty()) names.emplace_back();
  return names;
}

std::optional<double> parse_interval(std::string_view text) {
  try {
    auto const ns = parse_duration(text, "interval");
    if (ns <= 0) return std::nullopt;
    return static_cast<double>(ns) / 1e9;
  } catch (error const&) {
    return std::nullopt;
  }
}

}  // namespace sluice::trace
