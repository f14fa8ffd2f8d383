// SPDX-License-Identifier: Apache-2.0
// JSON that remembers the position of everything, so that messages can point at it. Depth, size and
// duplicate keys are bounded and refused here; policy.cc decides what the keys mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::policy {

/// A longer text is refused.
constexpr std::size_t most_text = 1 << 20;

struct position {
  unsigned line = 1;
  unsigned column = 1;
};

struct member;

struct node {
  enum kind_t : std::uint8_t { null, boolean, number, string, object, array } kind = null;
  position at;
  std::string text;  // of a string
  double value = 0;  // of a number
  bool truth = false;
  std::vector<member> members;
  std::vector<node> items;

  /// Null when there is no such key.
  node const* find(std::string_view key) const;
};

struct member {
  std::string key;
  position at;
  node value;
};

/// `an object`, `a string` …
char const* kind_name(node const& n);

inline constexpr std::size_t most_json_values = 20000;
/// Throws a usage error `name:line:column: …`, of more than so many values as well.
node parse_json(std::string_view text, std::string const& name,
                std::size_t most_values = most_json_values);

}  // namespace sluice::policy
