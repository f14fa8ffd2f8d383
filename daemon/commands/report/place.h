// SPDX-License-Identifier: Apache-2.0
// Finds the line of an error in a JSON text. The text is parsed without positions, which is fast
// and small; only after an error it is read once more to find the line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::report {

/// Keys and indices from the outermost value inwards.
using json_path = std::vector<std::variant<std::string, std::size_t>>;

/// `timeline.rows[3].values[17]`.
std::string path_text(json_path const& path);

/// The line on which the value stands; for an array or object the line on which it begins. 0: there
/// is no such value.
std::size_t line_of(std::string_view text, json_path const& path);

struct syntax_error {
  std::size_t line = 0, column = 0;  // 0: the text is sound
  std::string what;
};
syntax_error find_syntax_error(std::string_view text);

}  // namespace sluice::report
