// SPDX-License-Identifier: Apache-2.0
// One line of strace's output, taken apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::trace {

struct strace_line {
  enum class kind { call, begun, resumed, other };  // other: a signal, an exit, strace's own words
  kind is = kind::other;
  std::uint64_t pid = 0;  // 0: the line has none
  double unix_s = 0;
  std::string_view name;
  std::string_view arguments;  // of `resumed` those that the line still has
  std::string_view result;     // what follows `= `
};

/// Null, or what is wrong with the line.
char const* parse(std::string_view text, strace_line& line);

/// A descriptor as strace -y writes it: `3</path>`, `AT_FDCWD</path>`, or bare.
struct strace_descriptor {
  bool is_named = false;
  std::string_view path;
};
strace_descriptor descriptor_of(std::string_view argument);

/// The next argument, and `arguments` without it. Commas in quotes, brackets and names of
/// descriptors belong to the argument.
std::string_view take_argument(std::string_view& arguments);

/// A quoted string with its escapes resolved; empty when it is none.
std::string unquoted(std::string_view argument);

}  // namespace sluice::trace
