// SPDX-License-Identifier: Apache-2.0
// Numbers as people and other programs write them, on a command line and in files: decimal, without
// blanks, a unit or a leading `+`. `nan`, `inf`, hexadecimal digits and what is too large for the
// type are no numbers.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <system_error>

namespace sluice {

/// True: the whole text is one, and `value` has it. Else `value` stays as it is.
template <typename Number>
bool to_number(std::string_view text, Number& value) {
  Number read = {};
  char const* const last = text.data() + text.size();
  auto const [end, failed] = std::from_chars(text.data(), last, read);
  if (failed != std::errc() || end != last) return false;
  if constexpr (std::floating_point<Number>)
    if (!std::isfinite(read)) return false;
  value = read;
  return true;
}

/// The check of an option, for CLI11: it says what is wrong with a text that is no number from
/// `least` to `most`.
template <typename Number>
auto number_check(Number least, Number most) {
  return [=](std::string const& text) -> std::string {
    Number value = {};
    if (to_number(text, value) && value >= least && value <= most) return {};
    return fmt::format("\"{}\" is no number from {} to {}", text, least, most);
  };
}

}  // namespace sluice
